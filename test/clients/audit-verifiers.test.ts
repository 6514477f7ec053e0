import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueKey, withKey } from '#test/harness/accounts.js'
import { create, type Target } from '#test/harness/client.js'
import { runProgram } from '#test/harness/run-program.js'
import { sharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { auditLogOf, fileOf, leafHash, type AuditLogJson } from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'

type Outcome = 'accepted' | 'refused'

const HASHES = 'tile/0/000'
const ENTRIES = 'tile/entries/000'
/** Includes downloads from crates.io at the first time. */
const BUILD_WITHIN_MS = 600_000

/** Changes a byte of the first leaf or of its hash. */
async function alter(path: string): Promise<void> {
  const bytes = await readFile(path)
  bytes.writeUInt8(bytes.readUInt8(10) ^ 1, 10)
  await writeFile(path, bytes)
}

async function alterEntryAndHash(folder: string): Promise<void> {
  await alter(join(folder, ENTRIES))
  const entries = await readFile(join(folder, ENTRIES))
  const hashes = await readFile(join(folder, HASHES))
  leafHash(entries.toString('utf8', 2, 2 + entries.readUInt16BE())).copy(hashes)
  await writeFile(join(folder, HASHES), hashes)
}

/** The audit log read by programs of others. */
describe('verifiers of audit logs', () => {
  let auditor: Target
  let log: AuditLogJson
  let folder: string
  let exportFolder: string

  beforeAll(async () => {
    const mayfly = await sharedMayfly()
    auditor = withKey(mayfly, await issueKey(mayfly, { scopes: ['audit', 'inboxes'] }))
    log = await auditLogOf(auditor)
    folder = await mkdtemp(join(tmpdir(), 'mayfly-verifiers-'))
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

  function testExports(outcomeOf: (exportFolder: string, publicKey: string) => Promise<Outcome>): void {
    it('accepts an export', async () => {
      expect(await outcomeOf(exportFolder, log.public_key)).toBe('accepted')
    })

    it.each([
      ['hash', (altered: string) => alter(join(altered, HASHES))],
      ['entry', (altered: string) => alter(join(altered, ENTRIES))],
      ['entry and its hash', alterEntryAndHash],
    ])('refuses an export with an altered %s', async (_what, change) => {
      const altered = await mkdtemp(join(folder, 'altered-'))
      await cp(exportFolder, altered, { recursive: true })
      await change(altered)
      expect(await outcomeOf(altered, log.public_key)).toBe('refused')
    })

    it('refuses an export with the key of another log', async () => {
      const other = await auditLogOf(await sharedMayfly())
      expect(await outcomeOf(exportFolder, other.public_key)).toBe('refused')
    })
  }

  describeWith('tessera-fsck')('fsck of Tessera', () => {
    /** It ends with 0 in any case. With a single worker it does not end if something does not fit. */
    async function outcomeOf(url: string, publicKey: string, ...options: string[]): Promise<Outcome> {
      const keyFile = join(folder, 'public_key')
      await writeFile(keyFile, publicKey)
      const args = [`--storage_url=${url}`, `--public_key=${keyFile}`, '--ui=false', '-N=3']
      const { stderr } = await runProgram('tessera-fsck', [...args, ...options], { timeout: 60_000 })
      expect(stderr).toMatch(/Successfully fsck'd log with size 30\d|fsck failed/)
      return stderr.includes('fsck failed') ? 'refused' : 'accepted'
    }

    it('accepts a log over HTTP', async () => {
      const url = `${auditor.url}/v1/audit/logs/${log.id}/`
      expect(await outcomeOf(url, log.public_key, `--bearer_token=${auditor.apiKey}`)).toBe('accepted')
    })

    testExports((exported, publicKey) => outcomeOf(`file://${exported}/`, publicKey))
  })

  describeWith('cargo')('the Rust crate tlog_tiles', () => {
    const target = join(process.cwd(), 'node_modules/.cache/tlog-tiles')

    beforeAll(async () => {
      const built = await runProgram('cargo', ['build', '--release', '--locked', '--quiet'], {
        cwd: 'test/clients/tlog-tiles',
        env: { ...process.env, CARGO_TARGET_DIR: target },
      })
      expect(built).toMatchObject({ code: 0 })
    }, BUILD_WITHIN_MS)

    testExports(async (exported, publicKey) => {
      const program = join(target, 'release/verify-audit-log')
      const { code, stdout, stderr } = await runProgram(program, [exported, publicKey], {})
      expect(stdout || stderr).toMatch(/^30\d leaves|invalid transparency proof|UnverifiedNote/)
      return code === 0 ? 'accepted' : 'refused'
    })
  })
})
