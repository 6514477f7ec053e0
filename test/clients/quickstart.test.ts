import { readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { INSTALL_WITHIN_MS, installClients, type Project } from '#test/harness/client-packages.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { pythonWithPackages } from '#test/harness/python.js'
import { describeWith } from '#test/harness/tools.js'

/** Code blocks after a file name. */
const FILES = /`([\w.-]+\.(?:js|cjs|mjs|sh|py))`[^`]*:\n\n```\w+\n(.*?)^```$/gms
/** The second bundle is more than 32 KiB after the first, the window of gzip, so it is compressed on its own. */
const MAX_PACKAGE_BYTES = 40_000
const BIN = join(process.cwd(), 'node_modules/.bin')

/** Runs each example in a new project with the packed client. The examples of other packages have suites of their own. */
describe('docs/quickstart.md', () => {
  let mayfly: Mayfly
  let project: Project

  beforeAll(async () => {
    const starting = startMayfly({ isOneProcess: true })
    project = await installClients(['typescript'], ['nodemailer@10.6.0', 'vitest@5.1.1'])
    const page = await readFile('docs/quickstart.md', 'utf8')
    for (const [, name = '', content = ''] of page.matchAll(FILES)) await write(name, content)
    mayfly = await starting
  }, INSTALL_WITHIN_MS)
  afterAll(async () => {
    await mayfly.dispose()
    await project.dispose()
  })

  const write = (name: string, content: string) => writeFile(join(project.folder, name), content)

  /** Runs a command with the settings of the page. */
  function shell(command: string): Promise<{ code: number; output: string }> {
    return project.run('sh', ['-c', command], {
      PATH: [join(project.folder, 'node_modules/.bin'), BIN, process.env.PATH].join(delimiter),
      MAYFLY_URL: mayfly.url,
      MAYFLY_KEY: mayfly.apiKey,
      MAYFLY_SMTP: `127.0.0.1:${mayfly.smtpPort}`,
    })
  }
  it.each([
    { runner: 'Jest', command: 'jest --testMatch "**/jest-signup.test.js"', expected: /1 passed/ },
    { runner: 'Vitest', command: 'vitest run vitest-signup', expected: /1 passed/ },
    { runner: 'node:test', command: 'node --test node-signup.test.mjs', expected: /pass 1/ },
    { runner: 'curl', command: 'sh signup.sh', expected: /^493201$/m },
  ])('runs with $runner', async ({ command, expected }) => {
    const { code, output } = await shell(command)
    expect(output).toMatch(expected)
    expect(code).toBe(0)
  })

  describeWith('python-packages')('in Python', () => {
    it('runs with pytest', async () => {
      const python = await pythonWithPackages()
      const source = join(process.cwd(), 'clients/python')
      const command = `PYTHONPATH=${source} ${python} -m pytest -p mayfly_client.pytest_plugin test_signup.py`
      expect((await shell(command)).output).toMatch(/1 passed/)
    })
  })

  it('starts a server for a test run', async () => {
    await symlink(process.cwd(), join(project.folder, 'node_modules/mayfly'))
    expect(await shell('node own-server.mjs')).toEqual({ code: 0, output: '493201\n' })
  })

  it('has types that a strict project accepts', async () => {
    await write(
      'types.mts',
      `import { Mayfly, ApiError, type Inbox } from '@mayfly/client'
       const inbox: Inbox = await new Mayfly({ url: 'http://127.0.0.1', apiKey: 'key' }).inboxes.create({
         passwordProtected: true, labels: { run: '1' },
       })
       const code: string = await inbox.waitForCode({ subject: 'Welcome', hasLink: true, timeoutMs: 1_000 })
       for (const { href } of (await inbox.waitForMessage()).links) console.log(href, code)
       for await (const event of inbox.events()) if (event.data.type === 'message.received') console.log(event.data.data.subject)
       // @ts-expect-error there is no such code
       export const is = (error: ApiError) => error.code === 'no-such-code'
       // @ts-expect-error there is no such option
       await inbox.waitForMessage({ hasCodes: true })`,
    )
    const options = '--noEmit --strict --target es2024 --module nodenext --types node'
    const typeRoots = join(process.cwd(), 'node_modules/@types')
    const checked = await shell(`tsc ${options} --typeRoots ${typeRoots} types.mts`)
    expect(checked).toEqual({ code: 0, output: '' })
  })

  it('installs a small package', async () => {
    const { size } = await stat(join(project.folder, '../archives/mayfly-client-0.1.0.tgz'))
    expect(size).toBeLessThanOrEqual(MAX_PACKAGE_BYTES)
  })
})
