import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueKey, withKey } from '#test/harness/accounts.js'
import { create, type Target } from '#test/harness/client.js'
import { runProgram } from '#test/harness/run-program.js'
import { sharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { auditLogOf, fileOf, type AuditLogJson } from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'

/** The audit log read by the verifier of Tessera, a library for transparency logs. */
describeWith('tessera-fsck')('fsck of Tessera', () => {
  let auditor: Target
  let log: AuditLogJson
  let folder: string
  let exportFolder: string

  /** It ends with 0 in any case. With a single worker it does not end if something does not fit. */
  async function outcomeOf(url: string, ...options: string[]): Promise<'accepted' | 'refused'> {
    const args = [`--storage_url=${url}`, `--public_key=${join(folder, 'public_key')}`, '--ui=false', '-N=3']
    const { code, stderr } = await runProgram('tessera-fsck', [...args, ...options], { timeout: 60_000 })
    expect([code, stderr]).toEqual([0, expect.stringContaining('checking log of size 30')])
    return stderr.includes('fsck failed') ? 'refused' : 'accepted'
  }

  beforeAll(async () => {
    const mayfly = await sharedMayfly()
    auditor = withKey(mayfly, await issueKey(mayfly, { scopes: ['audit', 'inboxes'] }))
    log = await auditLogOf(auditor)
    folder = await mkdtemp(join(tmpdir(), 'mayfly-fsck-'))
    await writeFile(join(folder, 'public_key'), log.public_key)
    await create(auditor, '/v1/inboxes/bulk', { count: 300 })
    await until('a checkpoint', async () => {
      const note = await fileOf(auditor, `${log.id}/checkpoint`).catch(() => null)
      return Number(note?.toString().split('\n')[1] ?? 0) > 300
    })
    exportFolder = join(folder, 'log')
    const env = { PATH: process.env.PATH ?? '', MAYFLY_URL: auditor.url, MAYFLY_KEY: auditor.apiKey }
    const main = join(process.cwd(), 'dist/apps/cli/main.js')
    const exported = await runProgram(process.execPath, [main, 'audit', 'export', '--to', exportFolder], {
      env,
    })
    expect(exported).toMatchObject({ code: 0, stderr: '' })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('accepts a log over HTTP', async () => {
    const url = `${auditor.url}/v1/audit/logs/${log.id}/`
    expect(await outcomeOf(url, `--bearer_token=${auditor.apiKey}`)).toBe('accepted')
  })

  it('accepts an export, and refuses it with an altered hash', async () => {
    expect(await outcomeOf(`file://${exportFolder}/`)).toBe('accepted')
    const path = join(exportFolder, 'tile/0/000')
    const tile = await readFile(path)
    await writeFile(path, tile.fill(tile.readUInt8(0) ^ 1, 0, 1))
    expect(await outcomeOf(`file://${exportFolder}/`)).toBe('refused')
  })
})
