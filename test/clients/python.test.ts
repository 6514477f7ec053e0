import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { pythonWithPackages } from '#test/harness/python.js'
import { describeWith } from '#test/harness/tools.js'

const run = promisify(execFile)
const CLIENT = join(process.cwd(), 'clients/python')
const WITHIN_MS = 300_000

/** Builds the package as it is published, installs it into an empty folder, and runs its tests there. */
describeWith('python-packages')('the Python client', () => {
  let mayfly: Mayfly
  let python: string
  let folder: string
  let installed: string

  beforeAll(async () => {
    python = await pythonWithPackages()
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true })
    folder = await mkdtemp(join(tmpdir(), 'mayfly-python-'))
    installed = join(folder, 'installed')
    // Without the package, so that types are those of the installed one.
    for (const name of ['tests', 'codegen', 'example', 'pyproject.toml']) {
      await cp(join(CLIENT, name), join(folder, name), { recursive: true })
    }
    const dist = join(folder, 'dist')
    await output(['-m', 'build', '--no-isolation', '--outdir', dist, CLIENT])
    const wheel = (await readdir(dist)).find((name) => name.endsWith('.whl')) ?? ''
    const offline = ['--quiet', '--no-index', '--no-deps', '--disable-pip-version-check']
    await output(['-m', 'pip', 'install', ...offline, '--target', installed, join(dist, wheel)])
  }, WITHIN_MS)

  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  /** Resolves with what Python prints. Rejects with it if it fails or takes too long. */
  async function output(args: readonly string[]): Promise<string> {
    const env = {
      // pyright runs in Node.
      PATH: [join(process.cwd(), 'node_modules/.bin'), process.env.PATH].join(delimiter),
      PYTHONPATH: installed,
      PYTHONDONTWRITEBYTECODE: '1',
      MAYFLY_URL: mayfly.url,
      MAYFLY_SMTP: `127.0.0.1:${mayfly.smtpPort}`,
      MAYFLY_KEY: mayfly.apiKey,
      MAYFLY_FOLDER: process.cwd(),
    }
    try {
      const { stdout, stderr } = await run(python, args, { cwd: folder, env, timeout: WITHIN_MS })
      return stdout + stderr
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      throw new Error(`python ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error })
    }
  }

  it(
    'passes its tests',
    async () => {
      const tests = ['-p', 'no:cacheprovider', join(CLIENT, 'tests')]
      expect(await output(['-m', 'pytest', '-q', ...tests])).toMatch(/ passed in /)
    },
    WITHIN_MS,
  )

  it(
    'has types that mypy and pyright accept',
    async () => {
      const files = ['installed/mayfly_client', 'codegen', 'tests', 'example']
      expect(await output(['-m', 'mypy', ...files])).toContain('no issues found')
      expect(await output(['-m', 'pyright', '--pythonpath', python, ...files])).toContain('0 errors')
    },
    WITHIN_MS,
  )

  it('is formatted, and has no faults that ruff finds', async () => {
    expect(await output(['-m', 'ruff', 'check', CLIENT])).toContain('All checks passed')
    expect(await output(['-m', 'ruff', 'format', '--check', CLIENT])).toContain('already formatted')
  })
})
