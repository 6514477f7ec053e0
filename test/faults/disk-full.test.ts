import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { issueKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  mail,
  messagesOf,
  send,
  type InboxJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock } from '#test/harness/mayfly-with-clock.js'
import { MUST_RUN_ALL } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { sha256Of } from './acknowledged-writes.js'

/*
 * A file size limit simulates a full disk: the same writes fail, it needs no mount and no root, and it can be raised
 * while the process runs.
 */

const LIMIT_BYTES = 2 << 20
const BODY = 'x'.repeat(60_000)

describe('a full disk', () => {
  let mayfly: Mayfly
  let inbox: InboxJson
  const accepted = new Map<string, string>()

  beforeAll(async () => {
    const limited = ['bash', '-c', `ulimit -S -f ${LIMIT_BYTES >> 10}; exec "$0" "$@"`] as const
    // Without chDB: when a write fails, lmdb 3.5 prints three uninitialized numbers from the stack into 100 bytes. chDB's
    // calls leave large numbers there, which overflow the buffer.
    mayfly = await startMayfly({ through: limited })
    inbox = await createInbox(mayfly)
  })
  afterAll(() => mayfly.dispose())

  it('is answered 451 and 503, and the process continues', async () => {
    const refusal = await sendUntilRefused()
    expect(refusal).toMatch(/^451 4\.3\.0 /)
    const create = await until('a refusal to make an inbox', async () => {
      const answer = await call<{ code: string }>(mayfly, 'POST', '/v1/inboxes', { body: {} })
      return answer.status === 201 ? null : answer
    })
    expect(create.status).toBe(503)
    // Depends on the file that is full first.
    expect(['log-unavailable', 'catching-up']).toContain(create.body.code)
    expect(create.headers.get('retry-after')).toMatch(/^\d+$/)
    expect((await call(mayfly, 'GET', '/healthz')).status).toBe(200)
    expect((await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)).status).toBe(200)
  })

  it('is used again without a restart once there is space', async () => {
    execFileSync('prlimit', ['--pid', String(mayfly.pid), '--fsize=unlimited:unlimited'])
    await until('a mail to be taken', async () => (await sendOne()) === null)
    await everyAcceptedMailIsThere(mayfly)
  })

  it('loses nothing that was accepted, also after a restart', async () => {
    expect(await mayfly.end('SIGTERM')).toBe(0)
    mayfly = await startMayfly({ dataDir: mayfly.dataDir })
    await everyAcceptedMailIsThere(mayfly)
    expect(accepted.size).toBeGreaterThan(3)
  })

  /** Resolves with the refusal, or null if the mail was accepted. */
  async function sendOne(): Promise<string | null> {
    // Random text, because repetitive text is compressed.
    const text = BODY.replace(/x/g, () => Math.random().toString(36).charAt(2)).replace(/.{70}/g, '$&\r\n')
    const source = mail(`Mail ${accepted.size}`, text)
    try {
      const reply = await send(mayfly, inbox.address, source)
      const [, id = ''] = /^250 2\.0\.0 (\S+)/.exec(reply) ?? []
      accepted.set(id, sha256Of(source))
      return null
    } catch (error) {
      return String((error as { response?: unknown }).response)
    }
  }

  async function sendUntilRefused(): Promise<string> {
    for (let sent = 0; sent < 200; sent += 1) {
      const refusal = await sendOne()
      if (refusal !== null) return refusal
    }
    throw new Error('the disk does not get full')
  }

  async function everyAcceptedMailIsThere(target: Mayfly): Promise<void> {
    const messages = await messagesOf(target, inbox.id, accepted.size)
    const found = new Map(messages.map(({ id, sha256 }) => [id, sha256]))
    for (const [id, sha256] of accepted) expect(found.get(id)).toBe(sha256)
  }
})

const hasMount =
  spawnSync('mount', ['--fake', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0 && process.getuid?.() === 0
const describeWithMount = MUST_RUN_ALL || hasMount ? describe : describe.skip
if (!hasMount) process.stdout.write('skipped: a small file system that is full (run as root to mount one)\n')

describeWithMount('a full file system', () => {
  it('makes requests and mail fail with 503 and 451, and accepts them again once there is space', async () => {
    const folder = await mountSmall()
    const dataDir = join(folder.path, 'data')
    const filler = join(folder.path, 'filler')
    let mayfly = await startMayfly({ dataDir, hasAnalytics: true })
    try {
      const inbox = await createInbox(mayfly)
      await send(mayfly, inbox.address, mail('before'))
      await messagesOf(mayfly, inbox.id, 1)
      // Enough space for one inbox, but not for the views of many.
      await fill(folder.path, 200_000)
      expect(await until('the disk to be full', () => refusedInbox(mayfly))).toMatchObject(REFUSAL)
      await until(
        'no free space to be reported',
        async () => (await metric(mayfly, 'mayfly_free_disk_bytes')) < 0,
      )

      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096'])
      // There may be no space left for the views of the last inboxes.
      const code: unknown = expect.stringMatching(/^(log-unavailable|catching-up)$/)
      // The analytics engine may have freed some since.
      const again = await until('the disk to be full again', () => refusedInbox(mayfly))
      expect(again).toMatchObject({ ...REFUSAL, body: { code } })
      // Larger than the freed pages.
      const large = mail('full', randomBytes(100_000).toString('hex').replace(/.{70}/g, '$&\r\n'))
      await expect(send(mayfly, inbox.address, large)).rejects.toMatchObject({ responseCode: 451 })
      expect((await messagesOf(mayfly, inbox.id, 1)).map(({ subject }) => subject)).toEqual(['before'])

      await rm(filler)
      await createInbox(mayfly)
      await until(
        'free space to be reported',
        async () => (await metric(mayfly, 'mayfly_free_disk_bytes')) > 0,
      )
      await send(mayfly, inbox.address, mail('after'))
      const subjects = async () => (await messagesOf(mayfly, inbox.id, 2)).map(({ subject }) => subject)
      expect(await subjects()).toEqual(['before', 'after'])
      expect(await mayfly.end('SIGTERM')).toBe(0)
      mayfly = await mayfly.restart()
      expect(await subjects()).toEqual(['before', 'after'])
    } finally {
      await mayfly.end('SIGKILL')
      await folder.remove()
    }
  })

  it('lets inboxes, messages, keys and webhooks be removed, and inboxes expire', async () => {
    const folder = await mountSmall()
    const startMs = Date.now()
    const env = { MAYFLY_COUNT_USAGE: 'false' }
    const mayfly = await startWithClock(join(folder.path, 'data'), startMs, env)
    try {
      const [inbox, ending, expiring] = await Promise.all([
        createInbox(mayfly),
        createInbox(mayfly, { labels: { run: '1' } }),
        createInbox(mayfly, { duration: '10m' }),
      ])
      const webhooks = `/v1/inboxes/${inbox.id}/webhooks`
      const webhook = await registerWebhook(mayfly, webhooks, { url: 'http://127.0.0.1:9/' })
      const key = await issueKey(mayfly)
      for (const text of ['first', 'second']) await send(mayfly, inbox.address, mail(text))
      const [first] = await messagesOf(mayfly, inbox.id, 2)

      const reserved = SMALL_BYTES / 16
      await fill(folder.path, reserved * 0.8)
      // The free space may have been read just before.
      expect(await until('the disk to be full', () => refusedInbox(mayfly))).toMatchObject(REFUSAL)
      await expect(send(mayfly, inbox.address, mail('full'))).rejects.toMatchObject({ responseCode: 451 })
      const ready = () => call(mayfly, 'GET', '/readyz')
      expect(await ready()).toMatchObject({ status: 200, body: { status: 'ready', disk: 'full' } })

      const remove = async (path: string) =>
        expect((await call(mayfly, 'DELETE', path)).status).toBeLessThan(300)
      await remove(`/v1/inboxes/${inbox.id}/messages/${first?.id}`)
      await remove(`/v1/webhooks/${webhook.id}`)
      await remove(`/v1/keys/${key.id}`)
      expect((await call({ ...mayfly, apiKey: key.secret }, 'GET', '/v1/inboxes')).status).toBe(401)
      const bulk = await call(mayfly, 'POST', '/v1/inboxes/bulk-delete', { body: { label: 'run:1' } })
      expect(bulk).toMatchObject({ status: 200, body: { deleted: 1, remaining: 0 } })
      expect((await call(mayfly, 'GET', `/v1/inboxes/${ending.id}`)).status).toBe(410)
      await mayfly.setClock(startMs + 11 * 60_000)
      await until('the expiry', async () => (await metric(mayfly, 'mayfly_expired_inboxes_total')) === 1)
      expect((await call(mayfly, 'GET', `/v1/inboxes/${expiring.id}`)).status).toBe(410)
      await remove(`/v1/inboxes/${inbox.id}`)

      await rm(join(folder.path, 'filler'))
      const another = await createInbox(mayfly)
      await send(mayfly, another.address, mail('after'))
      expect((await messagesOf(mayfly, another.id, 1)).map(({ subject }) => subject)).toEqual(['after'])
      expect(await ready()).toMatchObject({ status: 200, body: { disk: 'ok' } })
    } finally {
      await mayfly.close()
      await folder.remove()
    }
  })
})

const SMALL_BYTES = 8 << 20
const REFUSAL = { status: 503, body: { code: 'log-unavailable' } }

/** Tries to create an inbox. Resolves with the answer if that is an error. */
async function refusedInbox(target: Target) {
  const answer = await call<{ code: string }>(target, 'POST', '/v1/inboxes', { body: {} })
  return answer.status === 201 ? null : answer
}

/** A small file system. `remove` unmounts it. */
async function mountSmall() {
  const folder = await makeFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SMALL_BYTES}`, 'tmpfs', folder.path])
  return {
    path: folder.path,
    async remove() {
      execFileSync('umount', [folder.path])
      await folder.remove()
    },
  }
}

/** Writes a file, so that this many bytes of the file system are left. */
async function fill(path: string, leftBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(path)
  const blocks = bavail - Math.ceil(leftBytes / bsize)
  spawnSync('dd', ['if=/dev/zero', `of=${join(path, 'filler')}`, `bs=${bsize}`, `count=${blocks}`])
}

async function metric(target: Target, name: string): Promise<number> {
  const { body } = await call<string>(target, 'GET', '/metrics')
  return Number(new RegExp(`^${name} (-?[\\d.e+]+)$`, 'm').exec(body)?.[1])
}
