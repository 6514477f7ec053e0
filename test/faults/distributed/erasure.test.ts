import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { serverClient } from '#libs/engines/clickhouse/clients.js'
import { openAccount, issueKey, withKey, type NewAccountJson } from '#test/harness/accounts.js'
import { call, createInbox, messagesOf, send, type Target } from '#test/harness/client.js'
import { databaseOf, distributedEnvironment } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { invite, join as joinAccount } from '#test/harness/members.js'
import { startRedis, type RedisServer } from '#test/harness/redis.js'
import { clickhouseUrl, describeOn, kafkaDataDir } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { leaks } from '../plain-text.js'

/** What people and their mail are known by, long enough not to occur anywhere by chance. */
const PERSONAL = {
  account: 'marker-account-aighoopi',
  owner: 'marker-owner-oongeith',
  removed: 'marker-removed-ieshaixu',
  invited: 'marker-invited-eiphohqu',
  url: 'marker-url-ahbaexoo',
  address: '2001:db8:51ab:7e::f00d',
  inbox: 'marker-inbox-uyeegahm',
  sender: 'marker-sender-oodaevah',
  subject: 'marker-subject-xeiphoza',
  text: 'marker-text-jaingiej',
}

const TEST_TIMEOUT_MS = 120_000

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('personal data of an account', () => {
  const folder = makeFolder()
  let redis: RedisServer
  let roles: MayflyWithClock
  let account: NewAccountJson
  let admin: Target

  beforeAll(async () => {
    // An append-only file has every write, also of what was removed afterwards.
    redis = await startRedis({ persistence: 'append-only', settings: { 'auto-aof-rewrite-percentage': 0 } })
    const { path } = await folder
    const env = {
      ...distributedEnvironment(basename(path)),
      REDIS_URL: redis.url,
      MAYFLY_TRUSTED_PROXIES: '1',
    }
    roles = await startWithClock(path, Date.now(), env)
    await roles.runAhead(0)
    account = await openAccount(roles, { name: PERSONAL.account })
    admin = withKey(roles, account.key)
  }, TEST_TIMEOUT_MS)
  afterAll(async () => {
    await roles.close()
    await redis.dispose()
    await (await folder).remove()
  })

  /** The markers that are on a disk, once each of the three servers has something of the account. */
  async function leaksOnDisks(): Promise<string[]> {
    const prefix = basename(roles.dataDir)
    const kafka = kafkaDataDir() ?? ''
    const partitions = (await readdir(kafka)).filter((name) => name.startsWith(prefix))
    const onKafka = partitions.map((name) => join(kafka, name))
    for (const folders of [onKafka, [redis.dataDir]]) {
      await until('the account to be on disk', async () => {
        return (await leaks({ id: account.id.slice('acc_'.length) }, ...folders)).length > 0
      })
    }
    const rows = await rowsOfClickHouse()
    const counted = Object.entries(PERSONAL).filter(([, marker]) => rows.includes(marker))
    return [
      ...(await leaks(PERSONAL, ...onKafka, redis.dataDir)),
      ...counted.map(([what]) => `${what} in ClickHouse`),
    ]
  }

  /** All rows of all tables, once they have the account. */
  async function rowsOfClickHouse(): Promise<string> {
    const database = databaseOf(basename(roles.dataDir))
    const address = { url: clickhouseUrl(), database, username: 'default', password: '', ca: null }
    const client = serverClient(address)
    const read = async (query: string) => (await client.query({ query, format: 'TabSeparated' })).text()
    try {
      const tables = (await read(`SELECT name FROM system.tables WHERE database = '${database}'`)).trim()
      return await until('usage of the account', async () => {
        const rows = await Promise.all(
          tables.split('\n').map((table) => read(`SELECT * FROM ${database}.\`${table}\``)),
        )
        return rows.join('').includes(account.id) ? rows.join('') : null
      })
    } finally {
      await client.close()
    }
  }

  it(
    'is shown, and on no disk in plain text',
    async () => {
      const headers = { 'x-forwarded-for': PERSONAL.address }
      const hook = { url: `https://ci.example/${PERSONAL.url}`, events: ['quota.reached'] }
      expect((await call(admin, 'POST', '/v1/webhooks', { body: hook, headers })).status).toBe(201)
      await joinAccount(admin, { role: 'owner' }, { email: `${PERSONAL.owner}@example.com` })
      const removed = await joinAccount(
        admin,
        { role: 'developer' },
        { email: `${PERSONAL.removed}@example.com` },
      )
      await invite(admin, { role: 'viewer' }, { email: `${PERSONAL.invited}@example.com` })
      expect((await call(admin, 'DELETE', `/v1/members/${removed.member.id}`)).status).toBe(200)
      const tester = withKey(roles, await issueKey(admin))
      const inbox = await createInbox(tester, { name: PERSONAL.inbox })
      const mail = `From: ${PERSONAL.sender}@example.com\r\nSubject: ${PERSONAL.subject}\r\n\r\n${PERSONAL.text}\r\n`
      await send(roles, inbox.address, mail)

      const [message] = await messagesOf(tester, inbox.id, 1)
      expect(message).toMatchObject({ subject: PERSONAL.subject })
      expect((await call(admin, 'GET', '/v1/account')).body).toMatchObject({ name: PERSONAL.account })
      const activity = await call<{ remote_address: string | null }[]>(admin, 'GET', '/v1/activity')
      expect(activity.body.map(({ remote_address }) => remote_address)).toContain(PERSONAL.address)
      expect(await leaksOnDisks()).toEqual([])
    },
    TEST_TIMEOUT_MS,
  )

  it(
    'is on no disk in plain text after the account is closed and erased',
    async () => {
      expect((await call(roles, 'POST', `/v1/accounts/${account.id}/close`)).status).toBe(200)
      await roles.runAhead(60_000)
      await until('the erasure', async () => {
        const { body } = await call<NewAccountJson>(roles, 'GET', `/v1/accounts/${account.id}`)
        return body.erased_at !== null
      })
      expect((await call(roles, 'GET', `/v1/accounts/${account.id}`)).body).toMatchObject({
        state: 'closed',
        name: null,
      })
      expect(await leaksOnDisks()).toEqual([])
    },
    TEST_TIMEOUT_MS,
  )
})
