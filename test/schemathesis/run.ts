import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pythonWithPackages } from '#test/harness/python.js'
import { call, inboxWith, mail, messagesOf, only, type Target } from '#test/harness/client.js'
import { richMail } from '#test/harness/rich-mail.js'

/** Folder of its configuration and hooks. */
const FOLDER = join(process.cwd(), 'infra/schemathesis')
/** The number of examples bounds a run; this bounds one that hangs. */
const WITHIN_MS = 1_140_000

export interface SchemathesisRun {
  /** 0 if it found nothing. */
  exitCode: number | null
  output: string
}

/** Checks a running API against the document that it serves. `onOutput` gets the output of schemathesis. */
export async function runSchemathesis(
  target: Target,
  onOutput: (text: string) => void = () => undefined,
): Promise<SchemathesisRun> {
  const python = await pythonWithPackages()
  const inbox = await inboxWith(target, richMail('someone@mayfly.test'), mail('second'))
  const [message] = await messagesOf(target, inbox.id, 2)
  const cursor = await cursorBeforeNewest(target, `/v1/inboxes/${inbox.id}/messages`)
  const environmentCursor = await cursorBeforeNewest(target, '/v1/messages')
  const { body: account } = await call<{ id: string }>(target, 'GET', '/v1/account')
  const { body: keys } = await call<{ id: string }[]>(target, 'GET', '/v1/keys')
  const args = [
    '-m',
    'schemathesis.cli',
    '--no-color',
    'run',
    `${target.url}/openapi.json`,
    '--checks',
    'all',
    // A revoked key stays readable. The end-to-end suites check that deleted resources are gone.
    '--exclude-checks',
    'use_after_free',
  ]
  const child = spawn(python, args, {
    cwd: FOLDER,
    env: {
      PATH: process.env.PATH,
      PYTHONDONTWRITEBYTECODE: '1',
      HYPOTHESIS_STORAGE_DIRECTORY: join(process.cwd(), 'node_modules/.cache/mayfly/hypothesis'),
      MAYFLY_KEY: target.apiKey,
      MAYFLY_KEY_ID: only(keys).id,
      MAYFLY_ACCOUNT_ID: account.id,
      MAYFLY_INBOX: inbox.id,
      MAYFLY_MESSAGE: message?.id,
      MAYFLY_CURSOR: cursor,
      MAYFLY_ENVIRONMENT_CURSOR: environmentCursor,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: WITHIN_MS,
    killSignal: 'SIGKILL',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      onOutput(text)
    })
  }
  await once(child, 'close')
  return { exitCode: child.exitCode, output }
}

/** A cursor before the newest message of a list. */
async function cursorBeforeNewest(target: Target, path: string): Promise<string | undefined> {
  const first = await call(target, 'GET', `${path}?limit=1`)
  return first.headers.get('mayfly-cursor') ?? undefined
}
