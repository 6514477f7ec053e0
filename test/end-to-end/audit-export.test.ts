import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import { call, create, createInbox, mail, send, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { auditLogOf, fileOf, type AuditLogJson } from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'

const MAIN = join(process.cwd(), 'dist/apps/cli/main.js')

interface Verification {
  size: number | null
  signed_at: string | null
  checkpoints: number
  records: number
  without_record: number
  problems: string[]
  problem_count: number
}

describe('an export of an audit log', () => {
  let mayfly: Mayfly
  let auditor: Target
  let log: AuditLogJson
  let folder: string

  const run = (target: Target | null, ...args: string[]) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      const access = target === null ? {} : { MAYFLY_URL: target.url, MAYFLY_KEY: target.apiKey }
      const options = { env: { PATH: process.env.PATH ?? '', ...access }, timeout: 110_000 }
      execFile(process.execPath, [MAIN, '--json', ...args], options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      )
    })

  async function exportTo(to: string): Promise<{ size: number; files: number }> {
    const { code, stdout, stderr } = await run(auditor, 'audit', 'export', '--to', to)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout) as { size: number; files: number }
  }

  async function verify(of: string, ...keys: string[]): Promise<Verification & { code: number }> {
    const publicKeys = keys.length === 0 ? [log.public_key] : keys
    const { code, stdout } = await run(null, 'audit', 'verify', of, '--public-key', ...publicKeys)
    return { ...(JSON.parse(stdout) as Verification), code }
  }

  const sizeOf = async () => {
    const note = await fileOf(auditor, `${log.id}/checkpoint`).catch(() => null)
    return Number(note?.toString().split('\n')[1] ?? 0)
  }

  beforeAll(async () => {
    mayfly = await startMayfly()
    const admin = withKey(mayfly, (await openAccount(mayfly)).key)
    auditor = withKey(mayfly, await issueKey(admin, { scopes: ['audit', 'inboxes', 'read', 'admin'] }))
    log = await auditLogOf(auditor)
    folder = await mkdtemp(join(tmpdir(), 'mayfly-audit-'))
    const { id, address } = await createInbox(auditor)
    await send(auditor, address, mail('one'))
    await create(auditor, '/v1/inboxes/bulk', { count: 300 })
    await call(auditor, 'DELETE', `/v1/inboxes/${id}`)
    await until('a checkpoint', async () => (await sizeOf()) > 300)
  })
  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  it('is verified without a network', async () => {
    const { size } = await exportTo(folder)
    const verified = await verify(folder)
    expect(verified).toMatchObject({ code: 0, size, records: size, without_record: 0, problems: [] })
    expect(verified.checkpoints).toBe(2)
    expect(Date.parse(verified.signed_at ?? '')).toBeGreaterThan(Date.now() - 120_000)
  })

  it('has no key of the API', async () => {
    const records = await readdir(join(folder, 'records'))
    for (const name of records) {
      expect(await readFile(join(folder, 'records', name), 'utf8')).not.toContain(auditor.apiKey)
    }
  })

  it('continues where the last export ended, and keeps its checkpoint', async () => {
    const first = await readdir(join(folder, 'records'))
    const entries = join(folder, 'tile/entries/000')
    const { mtimeMs } = await stat(entries)
    const before = await sizeOf()
    await createInbox(auditor)
    await until('a larger checkpoint', async () => (await sizeOf()) > before)
    const { size } = await exportTo(folder)
    expect((await stat(entries)).mtimeMs).toBe(mtimeMs)
    expect((await readdir(join(folder, 'records'))).length).toBe(first.length + 1)
    expect((await readdir(join(folder, 'checkpoints'))).length).toBe(2)
    expect(await verify(folder)).toMatchObject({ code: 0, size, records: size, checkpoints: 3, problems: [] })
  })

  it('is refused into the folder of another log', async () => {
    const other = withKey(mayfly, (await openAccount(mayfly)).key)
    const foreign = withKey(mayfly, await issueKey(other, { scopes: ['audit'] }))
    const own = await auditLogOf(foreign)
    await until('its checkpoint', () => fileOf(foreign, `${own.id}/checkpoint`).catch(() => null))
    const { code, stderr } = await run(foreign, 'audit', 'export', '--to', folder)
    expect([code, stderr]).toEqual([2, expect.stringContaining('another log')])
    expect((await verify(folder, own.public_key)).problems[0]).toMatch(/^checkpoint: it is of the log /)
  })

  const altered: { what: string; file: RegExp; alter: (bytes: Buffer) => Buffer; named: RegExp }[] = [
    {
      what: 'a leaf',
      file: /^tile\/entries\/000$/,
      alter: (bytes) => replaced(bytes, '"partition":', '"pbrtition":'),
      named: /^leaf \d+: it is not the canonical JSON/,
    },
    {
      what: 'a bundle that is cut',
      file: /^tile\/entries\/000$/,
      alter: cut,
      named: /^tile\/entries\/000: it is cut/,
    },
    { what: 'a tile', file: /^tile\/0\/000$/, alter: flipped, named: /^tile\/0\/000: it does not fit/ },
    {
      what: 'a partial tile',
      file: /^tile\/1\/000\.p\/1$/,
      alter: flipped,
      named: /^tile\/1\/000\.p\/1: it does not fit/,
    },
    {
      what: 'a record',
      file: /^records\/0-256/,
      alter: flipped,
      named: /^record of leaf \d+: it is not the one/,
    },
    {
      what: 'the checkpoint',
      file: /^checkpoint$/,
      alter: rootAltered,
      named: /^checkpoint: its signature is wrong/,
    },
  ]
  it.each(altered)('is found to be altered: $what', async ({ file, alter, named }) => {
    const copy = await mkdtemp(join(tmpdir(), 'mayfly-altered-'))
    try {
      await cp(folder, copy, { recursive: true })
      const files = await readdir(copy, { recursive: true })
      const path = files.find((each) => file.test(each)) ?? ''
      await writeFile(join(copy, path), alter(await readFile(join(copy, path))))
      const { code, problems } = await verify(copy)
      expect([code, problems[0]]).toEqual([6, expect.stringMatching(named)])
    } finally {
      await rm(copy, { recursive: true })
    }
  })
})

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  const at = Math.floor(copy.length / 2)
  copy.writeUInt8((copy[at] ?? 0) ^ 1, at)
  return copy
}

function cut(bytes: Buffer): Buffer {
  return bytes.subarray(0, -1)
}

function replaced(bytes: Buffer, text: string, by: string): Buffer {
  return Buffer.from(bytes.toString('latin1').replace(text, by), 'latin1')
}

function rootAltered(note: Buffer): Buffer {
  const lines = note.toString().split('\n')
  const [, , root = ''] = lines
  return Buffer.from(
    lines.with(2, root.startsWith('A') ? `B${root.slice(1)}` : `A${root.slice(1)}`).join('\n'),
  )
}
