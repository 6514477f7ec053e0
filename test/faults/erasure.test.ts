import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { open } from 'lmdb'
import { openAccount, withKey, type NewAccountJson } from '#test/harness/accounts.js'
import { call, createInbox, messagesOf, send, type InboxJson, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { join as joinAccount, type InvitationJson } from '#test/harness/members.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { brand } from '#libs/domain/ids/typeid.js'
import { contentsOf, leaks } from './plain-text.js'
import { eventsOf, openVault } from './stored-log.js'
import { straceCommand } from './synced-writes.js'

const MINUTE_MS = 60_000

/** Secrets of the mail and the inbox. Long enough not to occur anywhere by chance. */
const MARKERS = {
  subject: 'marker-subject-quahfeix',
  body: 'marker-body-ohghaech',
  html: 'marker-html-thaequee',
  sender: 'marker-sender-eeshoova',
  attachment: 'marker-attachment-iegahgee',
  content: 'marker-content-wohquiru',
  name: 'marker-name-ohchaesh',
  helo: 'marker-helo-aethiegh',
}

const SOURCE = [
  `From: Someone <${MARKERS.sender}@example.com>`,
  `Subject: ${MARKERS.subject}`,
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: text/plain; charset=utf-8',
  '',
  MARKERS.body,
  '--b',
  'Content-Type: text/html; charset=utf-8',
  '',
  `<p>${MARKERS.html}</p>`,
  '--b',
  'Content-Type: application/octet-stream',
  `Content-Disposition: attachment; filename="${MARKERS.attachment}.bin"`,
  'Content-Transfer-Encoding: base64',
  '',
  Buffer.from(MARKERS.content).toString('base64'),
  '--b--',
  '',
].join('\r\n')

describe('the content of an ended inbox', () => {
  const folder = makeFolder()
  let clock = Date.now()
  let roles: MayflyWithClock
  let deleted: InboxJson
  let expired: InboxJson
  let messageIds: Record<string, string>
  let wrapped: Buffer[]

  beforeAll(async () => {
    roles = await startWithClock((await folder).path, clock)
    deleted = await createInbox(roles, { name: MARKERS.name })
    expired = await createInbox(roles, { name: MARKERS.name, duration: '1m' })
    messageIds = {}
    for (const { id, address } of [deleted, expired]) {
      await send(roles, address, SOURCE)
      const [message] = await messagesOf(roles, id, 1)
      messageIds[id] = message?.id ?? ''
    }
  })
  afterAll(async () => {
    await roles.close()
    await (await folder).remove()
  })

  it('is in no file in plain text, even before the end', async () => {
    const { body } = await call<{ text: string }>(roles, 'GET', pathsOf(deleted)[2] ?? '')
    expect(body).toMatchObject({
      subject: MARKERS.subject,
      attachments: [{ filename: `${MARKERS.attachment}.bin` }],
    })
    expect(await leaks(MARKERS, roles.dataDir)).toEqual([])
    wrapped = await wrappedKeys(roles.dataDir, [deleted.id, expired.id])
  })

  it('is answered 410 everywhere after the deletion', async () => {
    expect((await call(roles, 'DELETE', `/v1/inboxes/${deleted.id}`)).status).toBe(200)
    await expectGone(deleted, 'inbox-deleted')
  })

  it('is answered 410 everywhere after the expiry', async () => {
    clock += MINUTE_MS
    await roles.setClock(clock)
    await expectGone(expired, 'inbox-expired')
    await until('the end to be in the list', async () => {
      const { body } = await call<InboxJson[]>(roles, 'GET', '/v1/inboxes?state=expired')
      return body.some(({ id }) => id === expired.id)
    })
  })

  it('loses its key, which is gone from the key file once that is rewritten', async () => {
    const ids = [deleted.id, expired.id]
    await until('both keys to be forgotten', async () => {
      const keys = await readFile(join(roles.dataDir, 'keys', 'keys.mdb'))
      return ids.every((id) => keys.includes(id)) && (await forgottenCount(roles.dataDir)) === 2
    })
    await roles.close()
    const vault = await openVault(roles.dataDir)
    await vault.rewrite()
    for (const id of ids) expect(await vault.find(id as never)).toEqual({ state: 'forgotten' })
    await vault.close()
    const files = await contentsOf(roles.dataDir)
    for (const key of wrapped) expect(files.filter(({ bytes }) => bytes.includes(key))).toEqual([])
    roles = await startWithClock(roles.dataDir, clock)
  })

  it('stays gone after a restart, and is in no file in plain text', async () => {
    await expectGone(deleted, 'inbox-deleted')
    await expectGone(expired, 'inbox-expired')
    expect(await leaks(MARKERS, roles.dataDir)).toEqual([])
  })

  function pathsOf({ id }: InboxJson): string[] {
    const messages = `/v1/inboxes/${id}/messages`
    const message = `${messages}/${messageIds[id] ?? ''}`
    return [`/v1/inboxes/${id}`, messages, message, `${message}/raw`, `${message}/attachments/0`]
  }

  async function expectGone(inbox: InboxJson, code: string): Promise<void> {
    for (const path of [
      ...pathsOf(inbox),
      ...pathsOf(inbox).map((one) => one.replace('inboxes', 'emails')),
    ]) {
      expect(await call(roles, 'GET', path)).toMatchObject({ status: 410, body: { code } })
    }
    expect(await answerToRcpt(roles, inbox.address)).toMatch(/^550 5\.1\.1 /)
  }
})

/** Longer than it takes to see a line of the log and to kill the process. */
const SLOW_SYNC_MS = 300

describeWith('strace')('an inbox', () => {
  const folder = makeFolder()
  let mayfly: Mayfly

  afterAll(async () => {
    await mayfly.dispose()
    await (await folder).remove()
  })

  it('whose key was deleted when Mayfly was killed has a certificate of erasure after the next start', async () => {
    const through = straceCommand(join((await folder).path, 'trace'), SLOW_SYNC_MS)
    mayfly = await startMayfly({ through })
    const { dataDir, apiKey } = mayfly
    const { id } = await createInbox(mayfly)
    const inboxId = brand('inb', id)
    expect((await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)).status).toBe(200)
    await until('the deletion of the key', () => mayfly.output().stderr.includes('"keys deleted, since '))
    await mayfly.end('SIGKILL')
    const vault = await openVault(dataDir)
    expect(await vault.find(inboxId)).toEqual({ state: 'forgotten' })
    await vault.close()
    expect((await eventsOf(dataDir, inboxId)).map(({ type }) => type)).toEqual([
      'InboxCreated',
      'InboxDeleted',
    ])

    mayfly = await startMayfly({ dataDir, apiKey })
    const certificate = await until('the certificate', async () => {
      const answer = await call<{ inbox_id: string }>(mayfly, 'GET', `/v1/inboxes/${id}/erasure`)
      return answer.status === 200 ? answer.body : null
    })
    expect(certificate.inbox_id).toBe(id)
    await mayfly.end('SIGTERM')
    const types = (await eventsOf(dataDir, inboxId)).map(({ type }) => type)
    expect(types).toEqual(['InboxCreated', 'InboxDeleted', 'InboxErased'])
  }, 120_000)
})

/** Personal data, long enough not to occur anywhere by chance. */
const PERSONAL = {
  name: 'marker-account-eexoothu',
  email: 'marker-email-ahxaiphu',
  removed: 'marker-removed-oosheiph',
  revoked: 'marker-revoked-iequohvo',
  url: 'marker-url-ohphiesh',
  address: '2001:db8:7a1e:51::beef',
}

describe('personal data', () => {
  const folder = makeFolder()
  let roles: MayflyWithClock
  let admin: Target
  let account: NewAccountJson
  let owners: string[]
  let wrapped: Buffer[]

  beforeAll(async () => {
    const env = { MAYFLY_TRUSTED_PROXIES: '1' }
    roles = await startWithClock((await folder).path, Date.now(), env)
    await roles.runAhead(0)
    account = await openAccount(roles, { name: PERSONAL.name })
    admin = withKey(roles, account.key)
  })
  afterAll(async () => {
    await roles.close()
    await (await folder).remove()
  })

  const changesOf = async (subject: string) => {
    const { body } = await call<ActivityJson[]>(admin, 'GET', `/v1/activity?subject=${subject}&order=asc`)
    return body.map(({ changes, remote_address }) => ({
      from: remote_address,
      email: changes.find(({ field }) => field === 'email')?.to ?? null,
    }))
  }
  const isForgotten = async (id: string) =>
    Object.hasOwn((await keyRows(roles.dataDir)).get(id) ?? {}, 'forgottenAt')

  it('is shown, and in no file in plain text', async () => {
    const headers = { 'x-forwarded-for': PERSONAL.address }
    const body = { url: `https://ci.example/${PERSONAL.url}`, events: ['quota.reached'] }
    expect((await call(admin, 'POST', '/v1/webhooks', { body, headers })).status).toBe(201)
    const invited = await call<InvitationJson>(admin, 'POST', '/v1/invitations', {
      ...{ headers, body: { email: `${PERSONAL.revoked}@example.com`, role: 'viewer' } },
    })
    const [kept, removed] = [
      await joinAccount(admin, { role: 'owner' }, { email: `${PERSONAL.email}@example.com` }),
      await joinAccount(admin, { role: 'developer' }, { email: `${PERSONAL.removed}@example.com` }),
    ]
    owners = [account.id, kept.member.id, removed.member.id, invited.body.id.replace('inv', 'mem')]
    expect((await call(admin, 'GET', '/v1/account')).body).toMatchObject({ name: PERSONAL.name })
    expect((await call(admin, 'GET', '/v1/webhooks')).body).toMatchObject([{ url: body.url }])
    expect((await call(admin, 'GET', '/v1/members?order=asc')).body).toMatchObject([
      { email: `${PERSONAL.email}@example.com` },
      { email: `${PERSONAL.removed}@example.com` },
    ])
    expect(await changesOf(owners[3] ?? '')).toEqual([
      { from: PERSONAL.address, email: `${PERSONAL.revoked}@example.com` },
    ])
    const again = { body: { email: `${PERSONAL.removed.toUpperCase()}@example.com`, role: 'viewer' } }
    expect((await call(admin, 'POST', '/v1/invitations', again)).status).toBe(400)
    expect(await leaks(PERSONAL, roles.dataDir)).toEqual([])
    wrapped = await wrappedKeys(roles.dataDir, owners)
  })

  it('of a member or an invitation is erased after its end', async () => {
    const [, kept = '', removed = '', revoked = ''] = owners
    expect((await call(admin, 'DELETE', `/v1/members/${removed}`)).body).toMatchObject({
      email: `${PERSONAL.removed}@example.com`,
    })
    const path = `/v1/invitations/${revoked.replace('mem', 'inv')}`
    expect((await call(admin, 'DELETE', path)).status).toBe(200)
    for (const id of [removed, revoked]) await until(`the end of ${id}`, () => isForgotten(id))
    expect((await call(admin, 'GET', path)).body).toMatchObject({ state: 'revoked', email: null })
    expect((await changesOf(removed))[0]).toMatchObject({ email: null })
    expect((await changesOf(kept))[0]).toMatchObject({ email: `${PERSONAL.email}@example.com` })
  })

  it('of a closed account is erased with all that it had', async () => {
    expect((await call(roles, 'POST', `/v1/accounts/${account.id}/close`)).status).toBe(200)
    await roles.runAhead(60_000)
    for (const id of owners) await until(`the end of ${id}`, () => isForgotten(id))
    const closed = await call(roles, 'GET', `/v1/accounts/${account.id}`)
    expect(closed.body).toMatchObject({ state: 'closed', name: null })
    await roles.close()
    const vault = await openVault(roles.dataDir)
    await vault.rewrite()
    await vault.close()
    const files = await contentsOf(roles.dataDir)
    for (const key of wrapped) expect(files.filter(({ bytes }) => bytes.includes(key))).toEqual([])
    expect(await leaks(PERSONAL, roles.dataDir)).toEqual([])
  })
})

interface ActivityJson {
  remote_address: string | null
  changes: { field: string; to: unknown }[]
}

type KeyRow = { wrapped: Buffer } | { forgottenAt: Date }

/** Reads a copy, because a process can open an LMDB file only once. */
async function keyRows(dataDir: string): Promise<Map<string, KeyRow>> {
  const copy = await makeFolder()
  const path = join(copy.path, 'keys.mdb')
  const { copyFile } = await import('node:fs/promises')
  await copyFile(join(dataDir, 'keys', 'keys.mdb'), path)
  const root = open<KeyRow, string>({ path, readOnly: true })
  const rows = new Map([...root.getRange({})].map(({ key, value }) => [key, value]))
  await root.close()
  await copy.remove()
  return rows
}

async function wrappedKeys(dataDir: string, ids: readonly string[]): Promise<Buffer[]> {
  const rows = await keyRows(dataDir)
  return ids.map((id) => {
    const row = rows.get(id)
    if (row === undefined || !('wrapped' in row)) throw new Error(`${id} has no key`)
    return Buffer.from(row.wrapped)
  })
}

async function forgottenCount(dataDir: string): Promise<number> {
  return [...(await keyRows(dataDir)).values()].filter((row) => Object.hasOwn(row, 'forgottenAt')).length
}
