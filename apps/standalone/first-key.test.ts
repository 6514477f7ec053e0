import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { FIRST_PLAN } from '#libs/domain/account/access.js'
import { readSettings } from '#libs/runtime/config/settings.js'
import { openEngine } from '#libs/engines/open-engine.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { call, createInbox, type Target } from '#test/harness/client.js'
import { secretIn, signIn } from '#test/harness/console.js'
import { NotStartedError } from '#test/harness/mayfly-process.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder } from '#test/harness/mayfly-with-clock.js'
import { until } from '#test/harness/until.js'

const NO_KEY = { MAYFLY_BOOTSTRAP_API_KEY: '' }
const SECRET = /mf_development_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}/g
const CLI = join(process.cwd(), 'dist/apps/cli/main.js')

/** Leaves the log as a start does that is killed after it stored the account and before it stored the key. */
async function openFirstAccount(dataDir: string): Promise<void> {
  const settings = readSettings({ MAYFLY_DATA_DIR: dataDir, MAYFLY_COUNT_USAGE: 'false' })
  const now = () => new Date()
  const engine = await openEngine({ settings, role: 'test', now, onError: () => undefined })
  const account = { accountId: mintId('acc'), name: 'bootstrap', plan: FIRST_PLAN, limits: null }
  const attribution = { accountId: account.accountId, environment: 'development', keyId: null }
  const recorder = new Recorder(engine.log, '/mayfly/api', now)
  await recorder.record({ type: 'AccountOpened', ...account, openedAt: now() }, attribution)
  await engine.close()
}

describe('the first API key, if none is configured', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  const running: Mayfly[] = []

  beforeEach(async () => {
    folder = await makeFolder()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((mayfly) => mayfly.end('SIGKILL')))
    await folder.remove()
  })

  async function start(env: Record<string, string> = {}): Promise<Mayfly> {
    const mayfly = await startMayfly({ dataDir: folder.path, env: { ...NO_KEY, ...env } })
    running.push(mayfly)
    return mayfly
  }

  /** What a start prints, which is complete a moment after it listens. */
  const welcomeOf = (mayfly: Mayfly) =>
    until('the welcome', () => {
      const { stdout } = mayfly.output()
      return stdout.includes('Try it:') && stdout
    })

  const withKey = (mayfly: Mayfly, apiKey: string): Target => ({ ...mayfly, apiKey })

  function recover(dataDir: string): Promise<{ code: number; stdout: string; stderr: string }> {
    return new Promise((resolve) => {
      execFile(process.execPath, [CLI, 'key', 'recover', '--data-dir', dataDir], (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      )
    })
  }

  it('is created by the next start if the first one was killed before it stored a key', async () => {
    await openFirstAccount(folder.path)
    const mayfly = await start()
    const [secret = ''] = mayfly.output().stdout.match(SECRET) ?? []
    const { body } = await call<unknown[]>(withKey(mayfly, secret), 'GET', '/v1/accounts')
    expect(body).toHaveLength(1)
  })

  it('is printed by the first start that succeeds, by no start that fails, and can be recovered', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const address = holder.address()
    const port = typeof address === 'object' ? String(address?.port) : ''
    for (const variable of ['MAYFLY_HTTP_PORT', 'MAYFLY_SMTP_PORT']) {
      const failed = await start({ [variable]: port }).catch((error: unknown) => error)
      expect(failed).toBeInstanceOf(NotStartedError)
      expect((failed as NotStartedError).stdout).not.toMatch(SECRET)
    }
    holder.close()

    const first = await start()
    const printed = new Set(first.output().stdout.match(SECRET))
    const [secret = ''] = printed
    expect(printed.size).toBe(1)
    const inbox = await createInbox(withKey(first, secret))
    const refused = await recover(folder.path)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(/is in use by another Mayfly process/)
    await first.end('SIGTERM')

    const { code, stdout } = await recover(folder.path)
    expect(code).toBe(0)
    const [recovered = ''] = stdout.match(SECRET) ?? []
    const second = await start()
    const welcome = await welcomeOf(second)
    expect(welcome).not.toMatch(SECRET)
    expect(welcome).toContain(`npx mayfly key recover --data-dir '${folder.path}'\n`)
    for (const key of [secret, recovered]) {
      expect((await call(withKey(second, key), 'GET', `/v1/inboxes/${inbox.id}`)).status).toBe(200)
    }
  })

  it('signs in to the console by a link that each start prints', async () => {
    const signInWithPrinted = async (mayfly: Mayfly) => {
      const [link = ''] = /^ +http\S+#sign-in=\S+$/m.exec(await welcomeOf(mayfly)) ?? []
      const session = await signIn(mayfly, secretIn(link.trim()))
      return (await session.ask<{ key_id: string }[]>(['GET', '/console/sessions'])).body
    }
    const first = await start()
    const [secret = ''] = first.output().stdout.match(SECRET) ?? []
    const { body } = await call<{ id: string }[]>(withKey(first, secret), 'GET', '/v1/keys')
    expect(await signInWithPrinted(first)).toMatchObject([{ key_id: body[0]?.id }])
    await first.end('SIGTERM')
    expect(await signInWithPrinted(await start())).toHaveLength(2)
  })

  it('is needed for a link to the console: without one, a start prints none', async () => {
    const first = await start()
    const [secret = ''] = first.output().stdout.match(SECRET) ?? []
    const { body } = await call<{ id: string }[]>(withKey(first, secret), 'GET', '/v1/keys')
    await call(withKey(first, secret), 'DELETE', `/v1/keys/${body[0]?.id ?? ''}`)
    await first.end('SIGTERM')
    expect(await welcomeOf(await start())).not.toContain('#sign-in=')
  })

  it('cannot be recovered from a folder that is not a data folder, and leaves that folder unchanged', async () => {
    const missing = join(folder.path, 'missing')
    const { code, stderr } = await recover(missing)
    expect(code).toBe(1)
    expect(stderr).toMatch(/is not a data folder of Mayfly/)
    expect(existsSync(missing)).toBe(false)
  })
})
