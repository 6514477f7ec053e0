import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'

const ROOT = process.cwd()
const SOURCES: Readonly<Record<string, string>> = {
  'apps/greeter/main.ts':
    "import { greeting } from '#libs/greeting.js'\nconst text: string = greeting\nconsole.log(text)\n",
  'apps/console/main.tsx': 'export const page: string = "first page"\n',
  'apps/console/public-inbox.tsx': 'export {}\n',
  'apps/console/docs.ts': 'export {}\n',
  'apps/console/console.css': 'body { margin: 0 }\n',
  'apps/console/index.html': '<script src="main.tsx"></script>\n',
  'libs/greeting.ts': "export const greeting: string = 'hello'\n",
  'libs/unused.ts': 'export {}\n',
  'clients/client.ts': 'export {}\n',
  'test/example.ts': 'export {}\n',
}

describe('the build', () => {
  let folder: string

  /** A small project, with the settings and the build of this one. */
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-build-'))
    for (const [file, text] of Object.entries(SOURCES)) await write(file, text)
    for (const each of ['package.json', '.swcrc', 'infra/build', 'libs/runtime']) {
      await cp(join(ROOT, each), join(folder, each), { recursive: true })
    }
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  async function write(file: string, text: string): Promise<void> {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), text)
  }

  function run(script: string, env: Record<string, string> = {}): Promise<{ code: number; printed: string }> {
    const path = [join(ROOT, 'node_modules/.bin'), process.env.PATH].join(delimiter)
    const options = { cwd: folder, env: { PATH: path, ...env } }
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        ['--disable-warning=ExperimentalWarning', script],
        options,
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code), printed: `${stdout}${stderr}` }),
      )
    })
  }
  const build = async () => (await run('infra/build/build.mjs')).printed
  const greet = async () => (await run('dist/apps/greeter/main.js')).printed

  /** The time of the last change of each file in dist/. */
  async function written(): Promise<Record<string, number>> {
    const files = await readdir(join(folder, 'dist'), { recursive: true })
    const times = files.map(async (file) => [file, (await stat(join(folder, 'dist', file))).mtimeMs] as const)
    return Object.fromEntries(await Promise.all(times))
  }

  it('does nothing and prints nothing if nothing changed', async () => {
    expect(await build()).toMatch(/^mayfly: building everything \.\.\. done in \d+\.\d s\n$/)
    const before = await written()
    expect(await build()).toBe('')
    expect(await written()).toEqual(before)
    expect(await greet()).toBe('hello\n')
  })

  it('compiles only what changed, and bundles that', async () => {
    await build()
    const before = await written()
    await write('libs/greeting.ts', "export const greeting: string = 'good evening'\n")
    expect(await build()).toContain('building what changed (files: 1)')
    const after = await written()
    expect(await greet()).toBe('good evening\n')
    expect(after['libs/greeting.js']).not.toBe(before['libs/greeting.js'])
    expect(after['libs/unused.js']).toBe(before['libs/unused.js'])
  })

  it('bundles nothing after a change of a test', async () => {
    await build()
    const before = await written()
    await write('test/example.ts', 'export const example: number = 1\n')
    await build()
    const after = await written()
    expect(after['test/example.js']).not.toBe(before['test/example.js'])
    expect(after['apps/greeter/main.js']).toBe(before['apps/greeter/main.js'])
  })

  it('has the changed console, without its earlier files', async () => {
    await build()
    await write('apps/console/main.tsx', 'export const page: string = "second page"\n')
    await build()
    const files = await readdir(join(folder, 'dist/apps/console/files'))
    const scripts = files.filter((file) => /^main-.*\.js$/.test(file))
    expect(scripts).toHaveLength(1)
    expect(await readFile(join(folder, 'dist/apps/console/files', String(scripts[0])), 'utf8')).toContain(
      'second',
    )
  })

  it('removes the output of a source that is gone', async () => {
    await build()
    await rm(join(folder, 'libs/unused.ts'))
    await build()
    expect(Object.keys(await written()).filter((file) => file.includes('unused'))).toEqual([])
  })

  it('is complete after one that ended early', async () => {
    await build()
    await write('libs/greeting.ts', 'export const = \n')
    expect(await build()).toContain('greeting.ts')
    await write('libs/greeting.ts', "export const greeting: string = 'again'\n")
    expect(await build()).toContain('building everything')
    expect(await greet()).toBe('again\n')
  })

  it('runs once if several processes start it at the same time', async () => {
    const printed = await Promise.all([build(), build(), build()])
    expect(printed.filter((text) => text.includes('building'))).toHaveLength(1)
    expect(await greet()).toBe('hello\n')
  })

  it('begins before a start only if the ports are free and the settings are valid', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const { port } = holder.address() as AddressInfo
    const free = { MAYFLY_HTTP_PORT: '0', MAYFLY_SMTP_PORT: '0' }
    for (const variable of ['MAYFLY_HTTP_PORT', 'MAYFLY_SMTP_PORT', 'MAYFLY_METRICS_PORT']) {
      expect(await run('infra/build/before-start.mjs', { ...free, [variable]: String(port) })).toEqual({
        code: 1,
        printed: `mayfly: port ${port} of 127.0.0.1 is in use; set ${variable} to a free one\n`,
      })
    }
    holder.close()
    const { code, printed } = await run('infra/build/before-start.mjs', { ...free, MAYFLY_MCP: 'perhaps' })
    expect(code).toBe(1)
    expect(printed).toContain('MAYFLY_MCP must be true or false')
    expect(printed).not.toContain('building')
    expect(await run('infra/build/before-start.mjs', free)).toMatchObject({ code: 0 })
    expect(await greet()).toBe('hello\n')
  })
})
