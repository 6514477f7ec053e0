import { hash } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Replay } from '#apps/cli/audit/replay-export.js'
import type { Verification } from '#apps/cli/audit/verify-export.js'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import { call, create, createInbox, mail, send, type InboxJson, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { runCli } from '#test/harness/run-program.js'
import { auditLogOf, fileOf, type AuditLogJson } from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'

describe('an export of an audit log', () => {
  let mayfly: Mayfly
  let auditor: Target
  let log: AuditLogJson
  let folder: string
  /** An inbox that has received a mail and was deleted. */
  let ended: string

  async function exportTo(to: string): Promise<{ size: number; files: number }> {
    const { code, stdout, stderr } = await runCli(auditor, 'audit', 'export', '--to', to)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout) as { size: number; files: number }
  }

  async function verify(...args: string[]): Promise<Verification & { code: number }> {
    const { code, stdout } = await runCli(
      null,
      'audit',
      'verify',
      folder,
      '--public-key',
      log.public_key,
      ...args,
    )
    return { ...(JSON.parse(stdout) as Verification), code }
  }

  /** The state is empty without --to. */
  async function replayed(...args: string[]): Promise<{ replay: Replay; state: string }> {
    const { code, stdout, stderr } = await runCli(null, 'audit', 'replay', folder, ...args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const [, path] = args.slice(args.indexOf('--to'))
    const state = args.includes('--to') ? await readFile(path ?? '', 'utf8') : ''
    return { replay: JSON.parse(stdout) as Replay, state }
  }

  const linesOf = (state: string) =>
    state
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; state?: string })

  const checkpointed = async () => {
    const note = await fileOf(auditor, `${log.id}/checkpoint`).catch(() => null)
    return Number(note?.toString().split('\n')[1] ?? 0)
  }

  beforeAll(async () => {
    mayfly = await startMayfly({ hasWebhooks: true, env: { MAYFLY_AUDIT_DELIVERIES: 'true' } })
    const admin = withKey(mayfly, (await openAccount(mayfly)).key)
    auditor = withKey(mayfly, await issueKey(admin, { scopes: ['audit', 'inboxes', 'read', 'admin'] }))
    log = await auditLogOf(auditor)
    folder = await mkdtemp(join(tmpdir(), 'mayfly-audit-'))
    const { id, address } = await createInbox(auditor)
    ended = id
    await send(auditor, address, mail('one'))
    const lasting = await createInbox(auditor, { labels: { run: '1', at: 'night' }, duration: '2h' })
    await send(auditor, lasting.address, mail('secret'))
    await create(auditor, '/v1/inboxes/bulk', { count: 300 })
    // Nothing listens there.
    const { id: webhook } = await create<{ id: string }>(auditor, `/v1/inboxes/${lasting.id}/webhooks`, {
      url: 'http://127.0.0.1:9/',
    })
    await call(auditor, 'POST', `/v1/webhooks/${webhook}/test`)
    await call(auditor, 'DELETE', `/v1/inboxes/${id}`)
    await until('a checkpoint', async () => (await checkpointed()) > 300)
  })
  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  it('is verified without a network', async () => {
    const { size } = await exportTo(folder)
    const verified = await verify()
    expect(verified).toMatchObject({ code: 0, size, records: size, without_record: 0, checkpoints: 1 })
    expect(verified.problems).toEqual([])
    expect(Date.parse(verified.signed_at ?? '')).toBeGreaterThan(Date.now() - 120_000)
  })

  it('has deliveries of webhooks if these are wanted', async () => {
    const path = `/v1/audit/logs/${log.id}/events?type=webhook.delivery&limit=2`
    const { body } = await call<{ type: string; position: string }[]>(auditor, 'GET', path)
    expect(body.map(({ type }) => type)).toEqual([
      'mayfly.webhook.delivery-requested',
      expect.stringMatching(/^mayfly.webhook.delivery-/),
    ])
    expect(body[0]?.position).toMatch(/^webhook-events\//)
  })

  it('continues where the last export ended, and keeps its checkpoint', async () => {
    const records = await readdir(join(folder, 'records'))
    const entries = join(folder, 'tile/entries/000')
    const { mtimeMs } = await stat(entries)
    const before = await checkpointed()
    await createInbox(auditor)
    await until('a larger checkpoint', async () => (await checkpointed()) > before)
    const { size } = await exportTo(folder)
    expect((await stat(entries)).mtimeMs).toBe(mtimeMs)
    expect((await readdir(join(folder, 'records'))).length).toBe(records.length + 1)
    expect(await verify()).toMatchObject({ code: 0, size, records: size, checkpoints: 2, problems: [] })
  })

  it('is replayed to the state that the API shows', async () => {
    const path = join(folder, 'state.partial')
    const { replay, state } = await replayed('--to', path)
    await rm(path)
    expect(replay.digest).toBe(hash('sha256', state))
    const lines = linesOf(state)
    const { body: account } = await call<{ id: string; plan: string }>(auditor, 'GET', '/v1/account')
    expect(lines[0]).toMatchObject({ id: account.id, plan: account.plan })
    const keys = await call<{ id: string; name: string; scopes: string[] }[]>(auditor, 'GET', '/v1/keys')
    expect(lines.filter(({ id }) => id.startsWith('key_'))).toEqual(
      keys.body
        .toReversed()
        .map(({ id, name, scopes }) => expect.objectContaining({ id, name, scopes }) as object),
    )
    const inboxes = await call<InboxJson[]>(auditor, 'GET', '/v1/inboxes?limit=1000&order=asc')
    expect(lines.filter(({ id, state: of }) => id.startsWith('inb_') && of === 'active')).toEqual(
      inboxes.body.map(({ name: _name, ...inbox }) => expect.objectContaining(inbox) as object),
    )
    expect(lines.filter(({ state: of }) => of === 'deleted')).toMatchObject([
      { id: ended, received_count: 1 },
    ])
    expect(replay).toMatchObject({
      inboxes: inboxes.body.length,
      ended_inboxes: 1,
      messages: 1,
      without_record: 0,
    })
    expect(state).not.toContain('secret')
    expect((await replayed()).replay).toEqual(replay)
  })

  it('is replayed to the state as of a number of leaves', async () => {
    const events = await call<{ index: number; type: string }[]>(
      auditor,
      'GET',
      `/v1/audit/logs/${log.id}/events?subject=${ended}`,
    )
    const { index = 0 } = events.body.find(({ type }) => type.endsWith('message-received')) ?? {}
    const path = join(folder, 'state.partial')
    const { state } = await replayed('--size', String(index + 1), '--to', path)
    await rm(path)
    const { body } = await call<InboxJson>(auditor, 'GET', `/v1/inboxes/${ended}?as_of=${index + 1}`)
    const { labels, expires_at, message_count, last_message_at } = body
    expect(linesOf(state).find(({ id }) => id === ended)).toMatchObject({
      ...{ state: 'active', labels, expires_at, message_count, last_message_at },
    })
    expect((await runCli(null, 'audit', 'replay', folder, '--size', '1000000')).code).toBe(2)
  })

  it('is not replayed with other records', async () => {
    const [first = ''] = await readdir(join(folder, 'records'))
    const path = join(folder, 'records', first)
    const records = await readFile(path, 'utf8')
    await writeFile(path, records.replace('staging', 'stbging'))
    const { code, stderr } = await runCli(null, 'audit', 'replay', folder)
    expect([code, stderr]).toEqual([6, expect.stringMatching(/record of leaf \d+: it is not the one/)])
    await writeFile(path, records)
  })

  it('is completed if files are missing, and is found to be incomplete before', async () => {
    const [first = ''] = await readdir(join(folder, 'records'))
    await rm(join(folder, 'records', first))
    await rm(join(folder, 'tile/0/000'))
    const { code, problems } = await verify()
    expect([code, problems]).toEqual([6, expect.arrayContaining(['tile/0/000: it is missing'])])
    await exportTo(folder)
    expect(await verify()).toMatchObject({ code: 0, problems: [] })
  })

  it('is found to be altered, by the exact place', async () => {
    const path = join(folder, 'tile/entries/000')
    const bundle = await readFile(path)
    await writeFile(path, Buffer.from(bundle.toString('latin1').replace('"staging"', '"stbging"'), 'latin1'))
    const { code, problems } = await verify()
    const [tile] = problems.filter((each) => each.startsWith('tile/'))
    expect([code, tile]).toEqual([6, 'tile/0/000: its hashes are not those of the leaves'])
    await writeFile(path, bundle)
    expect((await verify()).code).toBe(0)
  })

  it('is compared with a checkpoint that the auditor kept', async () => {
    const kept = join(folder, 'kept.partial')
    const names = await readdir(join(folder, 'checkpoints'))
    await cp(join(folder, 'checkpoints', names[0] ?? ''), kept)
    expect(await verify('--checkpoint', kept)).toMatchObject({ code: 0, problems: [] })
    await rm(kept)
    expect((await verify('--checkpoint', kept)).code).toBe(6)
  })

  it('is not replaced by a log that contradicts it', async () => {
    const path = join(folder, 'checkpoint')
    const note = await readFile(path, 'utf8')
    await writeFile(path, note.replace(/\n\d+\n/, '\n1000000\n'))
    const { code, stderr } = await runCli(auditor, 'audit', 'export', '--to', folder)
    expect([code, stderr]).toEqual([6, expect.stringContaining('contradicts the checkpoint')])
    await writeFile(path, note)
  })

  it('is only written into an empty folder, or one of the same log', async () => {
    const other = withKey(mayfly, (await openAccount(mayfly)).key)
    const foreign = withKey(mayfly, await issueKey(other, { scopes: ['audit'] }))
    const own = await auditLogOf(foreign)
    await until('its checkpoint', () => fileOf(foreign, `${own.id}/checkpoint`).catch(() => null))
    const mixed = await runCli(foreign, 'audit', 'export', '--to', folder)
    expect([mixed.code, mixed.stderr]).toEqual([2, expect.stringContaining('another log')])
    const taken = await runCli(foreign, 'audit', 'export', '--to', join(folder, 'records'))
    expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining('neither empty nor an export')])
  })

  it('needs a public key of an audit log', async () => {
    const { code, stderr } = await runCli(null, 'audit', 'verify', folder, '--public-key', 'x')
    expect([code, stderr]).toEqual([2, expect.stringContaining('the public key')])
  })
})
