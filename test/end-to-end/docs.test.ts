import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PROBLEMS } from '#apps/api/http/problems.js'
import { call } from '#test/harness/client.js'
import { NO_DNS } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { runProgram } from '#test/harness/run-program.js'
import { sharedMayfly } from '#test/harness/shared-mayfly.js'
import { freePort } from '#infra/servers/ports.js'

const run = promisify(execFile)
const GUIDE = join(process.cwd(), 'docs/api.md')

describe('the README', () => {
  // The script would use a Mayfly that already runs.
  const start = /^npm ci && \(npm start .*\)$/m
  const ports = ['http://127.0.0.1:3000', '127.0.0.1:2525'] as const
  let script: string

  beforeAll(async () => {
    const blocks = [...(await readFile('README.md', 'utf8')).matchAll(/^```sh\n(.*?)^```$/gms)]
    script = blocks.map(([, code = '']) => code).find((code) => code.includes('/messages/wait')) ?? ''
    for (const needed of [start, ...ports]) expect(script.search(needed)).toBeGreaterThanOrEqual(0)
  })

  it('has a short script from a clone to a code', async () => {
    const mayfly = await sharedMayfly()
    expect(script.trimEnd().split('\n')).toHaveLength(11)
    const here = script
      .replace(start, '')
      .replace(/^(export MAYFLY_BOOTSTRAP_API_KEY)=.*$/m, `$1='${mayfly.apiKey}'`)
      .replace(ports[0], mayfly.url)
      .replace(ports[1], `127.0.0.1:${mayfly.smtpPort}`)
    const { stdout } = await run('sh', ['-c', `set -eu\n${here}`], { env: { PATH: process.env.PATH } })
    expect(stdout).toBe('493201\n')
  })

  it('says how to use other ports, and where clients find the API then', async () => {
    const readme = await readFile('README.md', 'utf8')
    const [, http = '', smtp] =
      /`MAYFLY_HTTP_PORT=(\d+) MAYFLY_SMTP_PORT=(\d+) .*npm start`/.exec(readme) ?? []
    expect(smtp).toBeDefined()
    expect(readme).toContain(`MAYFLY_URL=http://127.0.0.1:${http}\``)
  })

  it('shows the log if the script cannot start Mayfly', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-readme-'))
    try {
      await writeFile(join(folder, 'mayfly.log'), 'port 3000 is taken')
      const here = script
        .replace(start, '')
        .replace(ports[0], `http://127.0.0.1:${await freePort()}`)
        .replace(/-gt \d+/, '-gt 1')
      await expect(run('sh', ['-c', here], { cwd: folder })).rejects.toMatchObject({
        stdout: '',
        stderr: expect.stringContaining('port 3000 is taken') as string,
      })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe('the API guide', () => {
  let mayfly: Mayfly
  let folder: string

  // Its own Mayfly, because it counts everything with a label.
  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true, env: NO_DNS })
    folder = await mkdtemp(join(tmpdir(), 'mayfly-guide-'))
  })
  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  it('has a session that runs unchanged', async () => {
    const blocks = [...(await readFile(GUIDE, 'utf8')).matchAll(/^```sh\n(.*?)^```$/gms)].map(
      ([, code]) => code,
    )
    expect(blocks.length).toBeGreaterThan(10)
    const env = {
      PATH: process.env.PATH,
      MAYFLY_URL: mayfly.url,
      MAYFLY_SMTP: `127.0.0.1:${mayfly.smtpPort}`,
      MAYFLY_KEY: mayfly.apiKey,
    }
    // Stops at the first command that fails, and prints it.
    const script = `set -eux\n${blocks.join('\n')}`
    const { stdout } = await run('bash', ['-c', script], { env, cwd: folder, timeout: 110_000 })
    for (const shown of ['"subject":"Welcome"', '118822', '"status":"ready"']) expect(stdout).toContain(shown)
  })

  it('has domains that are registered, checked and deleted', async () => {
    const guide = await readFile('docs/domains.md', 'utf8')
    const blocks = [...guide.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code]) => code)
    expect(blocks).toHaveLength(5)
    const { url: MAYFLY_URL, apiKey } = mayfly
    const env = { PATH: process.env.PATH, MAYFLY_URL, auth: `Authorization: Bearer ${apiKey}` }
    const { stdout } = await run('bash', ['-c', `set -eux\n${blocks.join('\n')}`], { env, cwd: folder })
    for (const shown of [
      '"state":"verified"',
      '_mayfly-challenge.staging.example.com. 3600 IN TXT "token=',
    ]) {
      expect(stdout).toContain(shown)
    }
  })

  it('has an audit log that is read, exported and verified', async () => {
    const guide = await readFile('docs/audit.md', 'utf8')
    const blocks = [...guide.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = '']) => inBuild(code))
    expect(blocks).toHaveLength(5)
    const { url: MAYFLY_URL, apiKey } = mayfly
    const env = { PATH: process.env.PATH, MAYFLY_URL, admin: `Authorization: Bearer ${apiKey}` }
    const { stdout } = await run('bash', ['-c', `set -eux\n${blocks.join('\n')}`], { env, cwd: folder })
    expect(stdout).toMatch(/^\S+\/v1\/audit\/logs\/log_\w+\n\d+\n\S{44}\n\n\u2014 /)
    expect(stdout).toMatch(/^without record +0$/m)
    expect(stdout).toContain('"state":"deleted"')
  })

  it('has a load run that finds the mail that is lost on purpose', async () => {
    const guide = await readFile('docs/load-testing.md', 'utf8')
    const [, code = ''] = /^```sh\n(.*?)^```$/ms.exec(guide) ?? []
    const here = code
      .replace('http://127.0.0.1:3000', mayfly.url)
      .replace('127.0.0.1:2525', `127.0.0.1:${mayfly.smtpPort}`)
    const env = { PATH: process.env.PATH, MAYFLY_KEY: mayfly.apiKey }
    const script = `set -eux\n${inBuild(here)}`
    const failed = await runProgram('bash', ['-c', script], { env, cwd: folder, timeout: 110_000 })
    expect(failed.code).toBe(6)
    expect(failed.stdout).toMatch(/^accepted +300$/m)
    const [, missing = '0'] = /^missing +(\d+) /m.exec(failed.stdout) ?? []
    const faults = await call<string>(mayfly, 'GET', '/metrics')
    expect(faults.body).toContain(`mayfly_faults_total{stage="after_accept",action="drop"} ${missing}`)
    expect(await readFile(join(folder, 'report.html'), 'utf8')).toContain('run:42')
  })

  it('names exactly the problems that have a page', async () => {
    const guide = await readFile(GUIDE, 'utf8')
    const rows = [...guide.matchAll(/^\|\s*\d{3}\s*\|(.+)\|$/gm)].map(([, codes = '']) => codes)
    const codes = rows.flatMap((row) => [...row.matchAll(/`([a-z-]+)`/g)].map(([, code = '']) => code))
    for (const code of codes) expect((await call(mayfly, 'GET', `/problems/${code}`)).status).toBe(200)
    expect(codes.toSorted()).toEqual(Object.keys(PROBLEMS).toSorted())
  })
})

/** Commands that run the client of this build. */
function inBuild(code: string): string {
  return code.replaceAll(
    'npx mayfly',
    `'${process.execPath}' '${join(process.cwd(), 'apps/cli/mayfly.mjs')}'`,
  )
}
