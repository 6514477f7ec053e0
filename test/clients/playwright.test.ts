import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Mayfly as Client } from '#clients/typescript/src/mayfly.js'
import { freePort } from '#infra/servers/ports.js'
import { codeBlocks, INSTALL_WITHIN_MS, installClients, type Project } from '#test/harness/client-packages.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { describeWith, findChromium } from '#test/harness/tools.js'

const EXAMPLE = 'clients/playwright/example'
const TSC = join(process.cwd(), 'node_modules/.bin/tsc')
const PACKAGES = ['@playwright/test@1.65.1', 'nodemailer@10.6.0', '@types/node@24', '@types/nodemailer@8']
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    skipLibCheck: true,
    module: 'nodenext',
    target: 'es2023',
    types: ['node'],
  },
  include: ['tests', 'playwright.config.ts'],
}

interface Result {
  status: string
  errors: { message: string }[]
  attachments: { name: string; contentType: string; path: string }[]
  annotations: { type: string; description: string }[]
}

interface Report {
  suites: { specs: { title: string; ok: boolean; tests: { results: Result[] }[] }[] }[]
}

/** The packed package in a new project: the example's tests, those of the docs, and those of the folder playwright/. */
describeWith('chromium')('the Playwright package', () => {
  let mayfly: Mayfly
  let client: Client
  let project: Project

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, env: { MAYFLY_CORS_ORIGINS: '*' } })
    client = new Client({ url: mayfly.url, apiKey: mayfly.apiKey })
    project = await installClients(['typescript', 'playwright'], PACKAGES)
    for (const part of ['app', 'tests', 'playwright.config.ts'])
      await cp(join(EXAMPLE, part), join(project.folder, part), { recursive: true })
    await cp('test/clients/playwright', join(project.folder, 'tests'), { recursive: true })
    const [quickstart = ''] = await codeBlocks('docs/quickstart.md', 'Playwright')
    const [readme = ''] = await codeBlocks('clients/playwright/README.md', 'Use')
    await writeFile(join(project.folder, 'tests/quickstart.spec.ts'), quickstart)
    await writeFile(join(project.folder, 'tests/readme.spec.ts'), readme)
    await writeFile(join(project.folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  }, INSTALL_WITHIN_MS)
  afterAll(async () => {
    await project.dispose()
    await mayfly.dispose()
  })

  /** Runs test files. Resolves with the exit code, the output, and the last result of each test by its title. */
  async function playwright(files: readonly string[], ...options: string[]) {
    const reportFile = join(project.folder, 'report.json')
    const cli = join(project.folder, 'node_modules/@playwright/test/cli.js')
    const ran = await project.run(process.execPath, [cli, 'test', ...files, '--reporter=json', ...options], {
      MAYFLY_URL: mayfly.url,
      MAYFLY_KEY: mayfly.apiKey,
      MAYFLY_SMTP: `127.0.0.1:${mayfly.smtpPort}`,
      CHROMIUM: findChromium() ?? '',
      PORT: String(await freePort()),
      PLAYWRIGHT_JSON_OUTPUT_FILE: reportFile,
    })
    const { suites } = JSON.parse(await readFile(reportFile, 'utf8')) as Report
    const specs = suites.flatMap((suite) => suite.specs)
    const results = new Map(
      specs.map(({ title, tests }) => [title, tests.flatMap((each) => each.results).at(-1)]),
    )
    return { ...ran, results }
  }

  it('type-checks', async () => {
    expect(await project.run(TSC, ['--noEmit'])).toEqual({ code: 0, output: '' })
  })

  it('passes the tests of the example and the docs, shows hostile mail safely, and deletes the inboxes', async () => {
    const files = ['signup', 'quickstart', 'readme', 'opening', 'browser']
    const { code, output, results } = await playwright(files)
    const failed = [...results].filter(([, result]) => result?.status !== 'passed')
    expect({ code, failed, output: code === 0 ? '' : output }).toEqual({ code: 0, failed: [], output: '' })
    expect(results.size).toBe(13)
    expect(await client.inboxes.list({ state: 'active' })).toEqual([])
    expect(await client.inboxes.list({ state: 'deleted' })).toHaveLength(14)
  })

  describe('when tests fail', () => {
    let results: Map<string, Result | undefined>

    beforeAll(async () => {
      const ran = await playwright(['failing'], '--timeout=12000', '--workers=2')
      expect(ran.code).toBe(1)
      ;({ results } = ran)
    })

    function failure(title: string): { message: string } & Pick<Result, 'attachments' | 'annotations'> {
      const { errors = [], attachments = [], annotations = [] } = results.get(title) ?? {}
      // Errors are coloured.
      const message = errors.map((each) => each.message.replaceAll(/\u001B\[\d+m/g, '')).join('\n')
      return { message, annotations, attachments: attachments.filter(({ name }) => name.startsWith('mail-')) }
    }

    it('says what was expected and what arrived', () => {
      const { message } = failure('does not receive what it expects')
      expect(message).toContain('expect(inbox).toHaveReceived({"subject": "Goodbye"})')
      expect(message).toContain('"Welcome 1"')
      expect(failure('receives what it does not expect').message).toMatch(
        /not\.toHaveReceived[^]*one arrived: "Welcome"/,
      )
      expect(failure('waits by default for less than the time of the test').message).toContain('within 6 s')
      expect(failure('misses a link').message).toMatch(/no link that matches \/unsubscribe\/[^]*app\.example/)
    })

    it('attaches the newest mails of all inboxes, as HTML and as source', async () => {
      const { attachments } = failure('does not receive what it expects')
      const subjects = ['Welcome 6', 'Welcome 5', 'Welcome 4', 'Welcome 3', 'Welcome 2']
      const names = subjects.flatMap((subject, index) => [
        `mail-${index + 1}: ${subject}`,
        `mail-${index + 1}.eml`,
      ])
      expect(attachments.map(({ name }) => name)).toEqual(names)
      const [html, source] = await Promise.all(attachments.map(({ path }) => readFile(path, 'utf8')))
      expect(html).toMatch(/^<!doctype html>.*Content-Security-Policy.*<b>Hello<\/b>/)
      expect(source).toContain('Subject: Welcome 6\r\n')
    })

    it('attaches the mails of a test that ran out of time', () => {
      const { attachments } = failure('runs out of time')
      expect(attachments.map(({ name }) => name)).toEqual(['mail-1: Before the end', 'mail-1.eml'])
    })

    it('reports only the failure of a test that deleted its inbox', () => {
      const { message, annotations } = failure('has deleted its inbox')
      expect(message.match(/inbox-deleted/g)).toHaveLength(1)
      expect(annotations).toMatchObject([
        { type: 'inbox', description: expect.stringContaining("can't be read") as string },
      ])
    })

    it('keeps the inboxes with their mail, and labels them with the run, the worker and the title', async () => {
      const inboxes = (await client.inboxes.list({ state: 'active' })).reverse()
      const titled = (title: string) =>
        inboxes.filter(({ labels }) => labels.title === `failing.spec.ts › ${title}`)
      const [inbox, other] = titled('does not receive what it expects')
      expect(inbox).toMatchObject({ message_count: 4 })
      expect(other).toMatchObject({ message_count: 2, labels: { kind: 'second' } })
      const { annotations } = failure('does not receive what it expects')
      expect(annotations.map(({ description }) => description).join()).toContain(`kept as ${inbox?.id}`)
      expect(inboxes).toHaveLength(6)
      const workers = new Set(inboxes.map(({ labels }) => labels.worker))
      const runs = new Set(inboxes.map(({ labels }) => labels.run))
      expect(workers.size).toBeGreaterThan(1)
      expect([...runs]).toEqual([expect.stringMatching(/^[\da-f-]{36}$/)])
    })
  })
})
