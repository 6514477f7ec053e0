import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { NewProject } from './new-project.js'

/** Code blocks after a file name. */
const FILES = /`([\w.-]+\.(?:js|cjs|mjs|sh))`[^`]*:\n\n```\w+\n(.*?)^```$/gms
const MAX_PACKAGE_BYTES = 30_000

/** Uses each example in a new project with the packed client. The examples of other packages have suites of their own. */
describe('docs/quickstart.md', () => {
  let mayfly: Mayfly
  let project: NewProject

  beforeAll(async () => {
    const starting = startMayfly({ isOneProcess: true })
    project = await NewProject.create(['clients/typescript'], ['nodemailer', 'vitest'])
    const page = await readFile('docs/quickstart.md', 'utf8')
    for (const [, name = '', content = ''] of page.matchAll(FILES)) await project.write(name, content)
    mayfly = await starting
  })
  afterAll(async () => {
    await mayfly.dispose()
    await project[Symbol.asyncDispose]()
  })

  const environment = () => ({
    MAYFLY_URL: mayfly.url,
    MAYFLY_KEY: mayfly.apiKey,
    MAYFLY_SMTP: `smtp://127.0.0.1:${mayfly.smtpPort}`,
  })

  it.each([
    { runner: 'Jest', command: 'jest --testMatch "**/jest-signup.test.js"', expected: /1 passed/ },
    { runner: 'Vitest', command: 'vitest run vitest-signup', expected: /1 passed/ },
    { runner: 'node:test', command: 'node --test node-signup.test.mjs', expected: /pass 1/ },
    { runner: 'curl', command: 'sh signup.sh', expected: /^493201$/m },
  ])('runs with $runner', async ({ command, expected }) => {
    expect(await project.shell(command, environment())).toMatch(expected)
  })

  it('starts a server for a test run', async () => {
    await symlink(process.cwd(), join(project.folder, 'node_modules/mayfly'))
    expect(await project.shell('node own-server.mjs')).toBe('493201\n')
  })

  it('has types that a strict project accepts', async () => {
    await project.write(
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
    expect(await project.shell(`tsc ${options} --typeRoots ${typeRoots} types.mts`)).toBe('')
  })

  it('installs a small package', async () => {
    const size = await project.shell('wc -c < mayfly-client-0.1.0.tgz')
    expect(Number(size)).toBeLessThanOrEqual(MAX_PACKAGE_BYTES)
  })
})
