import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '#infra/servers/ports.js'
import { call, createInbox, mail, send } from '#test/harness/client.js'
import { endpointsPerTest } from '#test/harness/endpoint.js'
import { engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { kafkaDataDir, redisUrl } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, type NewWebhookJson, type WebhookJson } from '#test/harness/webhooks.js'

describe('the URL of a webhook', () => {
  const isEmbedded = engineUnderTest() === 'embedded'
  const endpoints = endpointsPerTest()
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ hasWebhooks: true, env: { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' } })
  })
  afterAll(() => mayfly.dispose())

  it('is shown to its owner, and is never stored or logged in plain text', async () => {
    const [first, second] = ['first', 'second'].map((name) => `${name}-${randomBytes(12).toString('hex')}`)
    const endpoint = await endpoints.start()
    const url = `${endpoint.url}/${first}?token=${first}`
    const inbox = await createInbox(mayfly)
    const register = () =>
      call<NewWebhookJson>(mayfly, 'POST', `/v1/inboxes/${inbox.id}/webhooks`, {
        body: { url },
        headers: { 'idempotency-key': `register-${first}` },
      })
    const { body: webhook } = await register()
    expect(webhook.url).toBe(url)
    expect((await register()).body).toEqual(webhook)
    const path = `/v1/webhooks/${webhook.id}`
    const look = async () => (await call<WebhookJson>(mayfly, 'GET', path)).body.url
    const change = async (to: string) =>
      (await call<WebhookJson>(mayfly, 'PATCH', path, { body: { url: to } })).body.url

    await send(mayfly, inbox.address, mail('to the first URL'))
    await until('a request', () => endpoint.requests.length > 0)
    expect(endpoint.requests[0]?.url).toBe(`/hook/${first}?token=${first}`)
    expect(await change(url)).toBe(url)

    const dead = `http://127.0.0.1:${await freePort()}/${second}?token=${second}`
    expect(await change(dead)).toBe(dead)
    expect(await look()).toBe(dead)
    await send(mayfly, inbox.address, mail('to the second URL'))
    const failed = await until('a failed attempt', async () => {
      const deliveries = await deliveriesOf(mayfly, webhook.id)
      return deliveries.some(({ attempts }) => attempts[0]?.error != null) ? deliveries : null
    })
    const metrics = await call<string>(mayfly, 'GET', '/metrics')
    const seen = [JSON.stringify(failed), metrics.body]
    const before = await stored()

    const removed = await call<WebhookJson>(mayfly, 'DELETE', path)
    expect(removed.body.url).toBe(dead)
    expect((await call(mayfly, 'GET', path)).status).toBe(404)
    await mayfly.end('SIGTERM')
    const { stdout, stderr } = mayfly.output()
    seen.push(stdout, stderr)

    const found = [...before, ...(await stored())].filter(({ bytes }) =>
      [first, second].some((secret) => bytes.includes(secret ?? '')),
    )
    expect(found.map(({ name }) => name)).toEqual([])
    for (const text of seen) {
      expect(text).not.toContain(first)
      expect(text).not.toContain(second)
    }
  })

  /** The files of the data folder or, on the distributed engine, of the topics, and every key in Redis. */
  async function stored(): Promise<Stored[]> {
    if (isEmbedded) return filesIn(mayfly.dataDir)
    const folder = kafkaDataDir()
    if (folder === null) throw new Error('the folder of Kafka is unknown')
    const prefix = `${basename(mayfly.dataDir)}.`
    const partitions = (await readdir(folder)).filter((name) => name.startsWith(prefix))
    const files = await Promise.all(partitions.map((name) => filesIn(join(folder, name))))
    const all = [...files.flat(), ...(await redisKeys(prefix))]
    // Checks that the search reads the right files.
    for (const text of [`${prefix}account-events`, `${prefix}{accounts}`]) {
      expect(all.some(({ name, bytes }) => name.includes(text) && bytes.length > 0)).toBe(true)
    }
    return all
  }
})

interface Stored {
  name: string
  bytes: Buffer
}

async function filesIn(folder: string): Promise<Stored[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const read = await Promise.all(
    files.map(async (name) => {
      try {
        return [{ name, bytes: await readFile(name) }]
      } catch (error) {
        // Kafka may remove a file in the meantime.
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
        throw error
      }
    }),
  )
  return read.flat()
}

/** The raw fields and members of each key, because DUMP would compress them. */
async function redisKeys(prefix: string): Promise<Stored[]> {
  const client = new Redis(redisUrl())
  try {
    const keys = await client.keys(`${prefix}*`)
    return await Promise.all(keys.map(async (name) => ({ name, bytes: await valueOf(client, name) })))
  } finally {
    client.disconnect()
  }
}

async function valueOf(client: Redis, key: string): Promise<Buffer> {
  switch (await client.type(key)) {
    case 'hash': {
      const fields = await client.hgetallBuffer(key)
      return Buffer.concat(Object.entries(fields).flatMap(([name, value]) => [Buffer.from(name), value]))
    }
    case 'zset':
      return Buffer.concat(await client.zrangeBuffer(key, '0', '-1'))
    case 'set':
      return Buffer.concat(await client.smembersBuffer(key))
    case 'list':
      return Buffer.concat(await client.lrangeBuffer(key, 0, -1))
    case 'string':
      return (await client.getBuffer(key)) ?? Buffer.alloc(0)
    case 'none':
      return Buffer.alloc(0)
    default:
      throw new Error(`${key} has an unknown type`)
  }
}
