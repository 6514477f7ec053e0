import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { InboxData, mayflyTasks as MayflyTasks, MessageData } from '#clients/cypress/src/tasks.js'
import { send } from '#test/harness/client.js'
import { codeBlocks, INSTALL_WITHIN_MS, installClients, type Project } from '#test/harness/client-packages.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'

const TSC = join(process.cwd(), 'node_modules/.bin/tsc')
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    skipLibCheck: true,
    exactOptionalPropertyTypes: true,
    module: 'nodenext',
    target: 'es2023',
    types: ['cypress', 'node'],
    noEmit: true,
  },
  include: ['cypress.config.ts', 'cypress', 'source', 'readme'],
}

type Task = (request: unknown) => Promise<unknown>
type Command = (...args: unknown[]) => Promise<unknown>
type Commands = Record<'mayflyInbox' | 'mayflyWaitFor' | 'mayflyWaitForCode' | 'mayflyWaitForLink', Command>

/**
 * The packed package in a new project. Cypress itself can't run here, because its program is not in the npm registry:
 * the tasks run with a real Mayfly, the commands on a stand-in for `cy`, and all types are checked with those of Cypress.
 */
describe('the Cypress package', () => {
  let mayfly: SharedMayfly
  let project: Project
  let mayflyTasks: typeof MayflyTasks
  const environment = { ...process.env }

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    Object.assign(process.env, { MAYFLY_URL: mayfly.url, MAYFLY_KEY: mayfly.apiKey, MAYFLY_RUN: 'run 7' })
    project = await installClients(['typescript', 'cypress'], ['cypress@15.3.0', '@types/node@24'])
    ;({ mayflyTasks } = (await importInstalled('tasks.js')) as { mayflyTasks: typeof MayflyTasks })
  }, INSTALL_WITHIN_MS)
  afterAll(async () => {
    process.env = environment
    await project.dispose()
  })

  function importInstalled(file: string): Promise<unknown> {
    const path = join(project.folder, 'node_modules/@mayfly/cypress/dist', file)
    return import(pathToFileURL(path).href)
  }

  /** The tasks, with the conversion that `cy.task` makes: to JSON and back. */
  function registeredTasks(): Record<string, Task> {
    let registered: Record<string, Task> = {}
    mayflyTasks((_action, tasks) => (registered = tasks as unknown as Record<string, Task>), { env: {} })
    return Object.fromEntries(
      Object.entries(registered).map(([name, task]) => [
        name,
        async (request: unknown) => toJson(await task(toJson(request))),
      ]),
    )
  }

  function toJson(value: unknown): unknown {
    return JSON.parse(JSON.stringify(value))
  }

  describe('its tasks and commands', () => {
    const timeouts: (number | undefined)[] = []
    let commands: Commands

    beforeAll(async () => {
      const tasks = registeredTasks()
      const added: Record<string, Command> = {}
      Object.assign(globalThis, {
        Cypress: {
          currentTest: { titlePath: ['signup', 'sends a code'] },
          Commands: { add: (name: string, command: Command) => (added[name] = command) },
        },
        cy: {
          task(name: string, request: unknown, options?: { timeout?: number }) {
            timeouts.push(options?.timeout)
            return tasks[name]?.(request)
          },
        },
      })
      await importInstalled('commands.js')
      commands = added as Commands
    })

    async function call<Result>(name: keyof Commands, ...args: unknown[]): Promise<Result> {
      return commands[name](...args) as Promise<Result>
    }

    it('create an inbox with labels, and wait for a message, a code and a link', async () => {
      const inbox = await call<InboxData>('mayflyInbox', { labels: { kind: 'first' } })
      expect(inbox).toMatchObject({
        duration: '1h',
        labels: { run: 'run 7', title: 'signup › sends a code', kind: 'first' },
      })
      await send(mayfly, inbox.address, 'Subject: Welcome\r\n\r\nHello')
      const text = 'Your code is 493201. Or open https://app.example/verify?t=1'
      await send(mayfly, inbox.address, `Subject: Your code\r\n\r\n${text}`)
      const message = await call<MessageData>('mayflyWaitFor', inbox, { subject: 'welcome' })
      expect(message).toMatchObject({ subject: 'Welcome', cursor: expect.any(String) as string })
      const next = await call<MessageData>('mayflyWaitFor', inbox, { since: message.cursor })
      expect(next.subject).toBe('Your code')
      expect(await call('mayflyWaitForCode', inbox)).toBe('493201')
      expect(await call('mayflyWaitForLink', inbox, /VERIFY/i)).toBe('https://app.example/verify?t=1')
      expect(await call('mayflyWaitForLink', inbox, 'verify')).toBe('https://app.example/verify?t=1')
    })

    it('give the task more time than the wait', async () => {
      const inbox = await call<InboxData>('mayflyInbox')
      const wait = call('mayflyWaitFor', inbox, { subject: 'absent', timeout: 200 })
      await expect(wait).rejects.toThrow(/within 0.2 s: subject contains "absent".\nNo message arrived/)
      expect(timeouts.at(-1)).toBe(10_200)
    })

    it('send the password of a protected inbox', async () => {
      const inbox = await call<InboxData>('mayflyInbox', { passwordProtected: true })
      await send(mayfly, inbox.address, 'Subject: Secret\r\n\r\nHello')
      expect(await call('mayflyWaitFor', inbox)).toMatchObject({ subject: 'Secret' })
    })
  })

  it('refuses a key that the browser could read', () => {
    expect(() => mayflyTasks(() => undefined, { env: { MAYFLY_KEY: 'a key' } })).toThrow(
      /every page can read/,
    )
  })

  it('type-checks with the types of Cypress, as do the examples of the docs', async () => {
    const [config = '', support = '', spec = ''] = await codeBlocks('docs/quickstart.md', 'Cypress')
    const [readmeConfig = '', readmeSpec = ''] = await codeBlocks('clients/cypress/README.md', 'Use')
    const files = {
      'cypress.config.ts': config,
      'cypress/support/e2e.ts': support,
      'cypress/e2e/signup.cy.ts': spec,
      'readme/cypress.config.ts': readmeConfig,
      'readme/signup.cy.ts': readmeSpec,
      'tsconfig.json': JSON.stringify(TSCONFIG),
    }
    for (const folder of ['cypress/support', 'cypress/e2e', 'readme', 'source'])
      await mkdir(join(project.folder, folder), { recursive: true })
    for (const [name, content] of Object.entries(files)) await writeFile(join(project.folder, name), content)
    for (const name of ['commands.ts', 'tasks.ts'])
      await cp(join('clients/cypress/src', name), join(project.folder, 'source', name))
    expect(await project.run(TSC, [])).toEqual({ code: 0, output: '' })
  })

  it('is configured as the docs show', async () => {
    const [config = ''] = await codeBlocks('docs/quickstart.md', 'Cypress')
    await writeFile(join(project.folder, 'config.mjs'), config)
    const script = `const { default: { e2e } } = await import('./config.mjs')
      e2e.setupNodeEvents((action, tasks) => console.log(action, Object.keys(tasks).join()), { env: {} })`
    const { output } = await project.run(process.execPath, ['--input-type=module', '-e', script], {
      MAYFLY_KEY: mayfly.apiKey,
    })
    expect(output).toBe('task mayflyInbox,mayflyWaitFor,mayflyWaitForCode,mayflyWaitForLink\n')
  })
})
