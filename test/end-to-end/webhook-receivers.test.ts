import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { call, createInbox, mail, only, send } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { pythonWithPackages } from '#test/harness/python.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

interface Receiver {
  port: number
  /** Its output, one line for each request. */
  lines(): string[]
  dispose(): Promise<void>
}

const run = promisify(execFile)
const GUIDE = join(process.cwd(), 'docs/webhooks.md')
const LISTENING = /^listening on (\d+)$/m
/** A closed port. The webhook is registered before its receiver runs, because the receiver needs the secret. */
const NOT_YET = 'http://127.0.0.1:9/hook'

describe('a receiver from docs/webhooks.md', () => {
  let mayfly: Mayfly
  let folder: string

  beforeAll(async () => {
    mayfly = await startMayfly({ hasWebhooks: true, env: { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' } })
    folder = await mkdtemp(join(tmpdir(), 'mayfly-receivers-'))
    await symlink(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))
  })
  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  it('is registered and tested with commands that run unchanged', async () => {
    const script = (await blocksOf('sh')).join('\n').replaceAll('https://ci.example/mail', NOT_YET)
    expect(script).toContain(NOT_YET)
    const env = { PATH: process.env.PATH, MAYFLY_URL: mayfly.url, MAYFLY_KEY: mayfly.apiKey }
    const session = `set -eu\n${script}\nprintf '\\n%s' "$secret"`
    const { stdout } = await run('bash', ['-c', session], { env, timeout: 100_000 })
    expect(stdout).toMatch(/"inbox_id":null.*"event":"sample".*\nwhsec_\S+$/s)
    await call(mayfly, 'DELETE', `/v1/webhooks/${/whk_\w+/.exec(stdout)?.[0] ?? ''}`)
  })

  describe('in TypeScript', () => {
    receives('ts', 'receiver.ts', () => Promise.resolve(process.execPath))
  })

  describeWith('python-packages')('in Python', () => {
    receives('python', 'receiver.py', pythonWithPackages)
  })

  function receives(language: string, file: string, program: () => Promise<string>): void {
    it('accepts a mail, drops its repeat and refuses requests that are not signed with its secret', async () => {
      const inbox = await createInbox(mayfly)
      const { id, secret } = await registerWebhook(mayfly, `/v1/inboxes/${inbox.id}/webhooks`, {
        url: NOT_YET,
      })
      await writeFile(join(folder, file), only(await blocksOf(language)))
      const receiver = await startReceiver(await program(), join(folder, file), secret)
      const url = `http://127.0.0.1:${receiver.port}/hook`
      const saying = (subject: string) => JSON.stringify({ type: 'message.received', data: { subject } })
      try {
        await call(mayfly, 'PATCH', `/v1/webhooks/${id}`, { body: { url } })
        await send(mayfly, inbox.address, mail('the first'))
        const deliveryId = await succeeded(id)
        await until('a line', () => receiver.lines().length > 0)
        expect(receiver.lines()).toEqual(['mail: the first'])

        const other = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
        expect(await post(url, saying('forged'), signed('dlv_forged', saying('forged'), other))).toBe(401)
        expect(await post(url, saying('forged'), signed('dlv_forged', saying('other'), secret))).toBe(401)
        expect(await post(url, saying('forged'), {})).toBe(401)
        expect(await post(url, saying('repeat'), signed(deliveryId, saying('repeat'), secret))).toBe(204)

        await send(mayfly, inbox.address, mail('the second'))
        await until('two lines', () => receiver.lines().length >= 2)
        expect(receiver.lines()).toEqual(['mail: the first', 'mail: the second'])
      } finally {
        await receiver.dispose()
      }
    })
  }

  /** Resolves with the id of the only delivery once it has succeeded. */
  async function succeeded(webhookId: string): Promise<string> {
    const path = `/v1/webhooks/${webhookId}/deliveries?state=succeeded`
    return until('a delivery', async () => {
      const { body } = await call<{ id: string; attempts: unknown[] }[]>(mayfly, 'GET', path)
      return body.length > 0 && only(body).id
    })
  }
})

/** The code blocks of the guide in a language. */
async function blocksOf(language: string): Promise<string[]> {
  const blocks = (await readFile(GUIDE, 'utf8')).matchAll(
    new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'),
  )
  return [...blocks].map(([, code = '']) => code)
}

/** Starts the program on a free port. Resolves once it listens. */
async function startReceiver(program: string, file: string, secret: string): Promise<Receiver> {
  const env = { PATH: process.env.PATH, WEBHOOK_SECRET: secret, PORT: '0' }
  const child = spawn(program, [file], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const printed = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (printed.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (printed.stderr += chunk.toString()))
  const closed = once(child, 'close')
  const dispose = async () => {
    child.kill('SIGKILL')
    await closed
  }
  try {
    const port = await until('the receiver to listen', () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${printed.stderr}`)
      return LISTENING.exec(printed.stdout)?.[1]
    })
    const lines = () => printed.stdout.replace(LISTENING, '').split('\n').filter(Boolean)
    return { port: Number(port), lines, dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

function signed(id: string, body: string, secret: string): Record<string, string> {
  const now = new Date()
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
  }
}

async function post(url: string, body: string, headers: Record<string, string>): Promise<number> {
  const answer = await fetch(url, { method: 'POST', body, headers, signal: AbortSignal.timeout(10_000) })
  await answer.text()
  return answer.status
}
