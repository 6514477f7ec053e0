import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PROBLEMS } from '#apps/api/http/problems.js'
import { call, messagesOf } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'

const run = promisify(execFile)
const GUIDE = join(process.cwd(), 'docs/api.md')

describe('the README', () => {
  it('has a session that leads from an inbox to a code', async () => {
    const mayfly = await startMayfly()
    try {
      const blocks = [...(await readFile('README.md', 'utf8')).matchAll(/^```sh\n(.*?)^```$/gms)]
      const session = blocks.map(([, code = '']) => code).find((code) => code.includes('MAYFLY_KEY'))
      const script = (session ?? '')
        .replace(/^export MAYFLY_KEY=.*$/m, '')
        .replace('http://127.0.0.1:3000', mayfly.url)
        .replace('127.0.0.1:2525', `127.0.0.1:${mayfly.smtpPort}`)
      const env = { PATH: process.env.PATH, MAYFLY_KEY: mayfly.apiKey }
      const { stdout: id } = await run('bash', ['-c', `set -eu\n${script}\nprintf '\\n%s' "$id"`], { env })
      const [message] = await messagesOf(mayfly, id.split('\n').at(-1) ?? '', 1)
      expect(message).toMatchObject({ subject: 'Your code is 493201', codes: [{ value: '493201' }] })
    } finally {
      await mayfly.dispose()
    }
  })
})

describe('the API guide', () => {
  let mayfly: Mayfly
  let folder: string

  beforeAll(async () => {
    mayfly = await startMayfly()
    folder = await mkdtemp(join(tmpdir(), 'mayfly-guide-'))
  })
  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  it('has a session that runs as it stands', async () => {
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
    // The first command that fails ends it, and shows which it was.
    const script = `set -eux\n${blocks.join('\n')}`
    const { stdout } = await run('bash', ['-c', script], { env, cwd: folder, timeout: 25_000 })
    for (const shown of ['"subject":"Welcome"', '118822', '"status":"ready"']) expect(stdout).toContain(shown)
  })

  it('names every problem there is a page for, and no other', async () => {
    const guide = await readFile(GUIDE, 'utf8')
    const rows = [...guide.matchAll(/^\|\s*\d{3}\s*\|(.+)\|$/gm)].map(([, codes = '']) => codes)
    const codes = rows.flatMap((row) => [...row.matchAll(/`([a-z-]+)`/g)].map(([, code = '']) => code))
    for (const code of codes) expect((await call(mayfly, 'GET', `/problems/${code}`)).status).toBe(200)
    expect(codes.toSorted()).toEqual(Object.keys(PROBLEMS).toSorted())
  })
})
