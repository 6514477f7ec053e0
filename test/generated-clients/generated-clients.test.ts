import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { pythonWithPackages } from '#test/harness/python.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'

const run = promisify(execFile)
const BIN = join(process.cwd(), 'node_modules/.bin')
const GUIDE = join(process.cwd(), 'docs/generated-clients.md')
const WITHIN_MS = 100_000

/** The compiler options of a new project. */
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    skipLibCheck: true,
    module: 'nodenext',
    target: 'es2023',
    types: ['node'],
    outDir: 'out',
  },
}

/** Generates clients, checks their types and runs tests with them, exactly as docs/generated-clients.md shows. */
describe('a client generated from the OpenAPI document', () => {
  let mayfly: SharedMayfly
  let guide: string
  let folder: string

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    guide = await readFile(GUIDE, 'utf8')
    folder = await mkdtemp(join(tmpdir(), 'mayfly-clients-'))
    await symlink(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))
    const files = guide.matchAll(/`([\w.-]+\.(?:ts|js|yml|py))`[^`]*\n```\w+\n(.*?)^```$/gms)
    for (const [, name = '', content = ''] of files) await writeFile(join(folder, name), content)
    await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Resolves with the output of a program. Rejects with the output if it fails or takes too long. */
  async function output(program: string, args: readonly string[], ...bins: string[]): Promise<string> {
    const env = {
      PATH: [...bins, BIN, process.env.PATH].join(delimiter),
      MAYFLY_URL: mayfly.url,
      MAYFLY_SMTP: `127.0.0.1:${mayfly.smtpPort}`,
      MAYFLY_KEY: mayfly.apiKey,
    }
    try {
      const { stdout, stderr } = await run(program, args, { cwd: folder, env, timeout: WITHIN_MS })
      return stdout + stderr
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error })
    }
  }

  /** Runs the commands of a section of the guide, except those that install something. */
  function generate(heading: string, ...bins: string[]): Promise<string> {
    const section = guide.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? ''
    const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
    const script = blocks.join('').replaceAll(/^(npm|pip) install .*$/gm, '')
    expect(script).toMatch(/\S/)
    return output('sh', ['-c', `set -eu\n${script}`], ...bins)
  }

  describe('in TypeScript', () => {
    beforeAll(async () => {
      await generate('TypeScript with openapi-typescript')
      await generate('TypeScript with Hey API')
      await output('tsc', ['--noCheck'])
    }, WITHIN_MS)

    it(
      'type-checks',
      async () => {
        expect(await output('tsc', ['--noEmit'])).toBe('')
      },
      WITHIN_MS,
    )

    it.each(['openapi-fetch.test.js', 'hey-api.test.js'])('passes a sign-up test: %s', async (file) => {
      expect(await output(process.execPath, [join('out', file)])).toMatch(/ pass [1-9]/)
    })
  })

  describeWith('python-packages')('in Python', () => {
    let python: string
    let generated: string

    beforeAll(async () => {
      python = await pythonWithPackages()
      generated = await generate('Python with openapi-python-client', dirname(python))
    }, WITHIN_MS)

    it('is generated without a warning', () => {
      expect(generated).not.toMatch(/warning|error/i)
    })

    it(
      'type-checks',
      async () => {
        const checked = await output(python, ['-m', 'mypy', '--strict', 'mayfly_client', 'test_sign_up.py'])
        expect(checked).toContain('no issues found')
      },
      WITHIN_MS,
    )

    it('passes a sign-up test', async () => {
      expect(await output(python, ['-m', 'unittest', 'test_sign_up'])).toMatch(/^OK$/m)
    })
  })
})
