import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import pino from 'pino'
import { beforeDeadline } from '#libs/runtime/timing.js'

const MODULE = resolve('dist/libs/runtime/process/run-process.js')
/** A process that logs two lines at once while it closes. */
const PROGRAM = `
  import { runProcess } from ${JSON.stringify(MODULE)}
  setInterval(() => undefined, 1_000)
  const close = (logger) => Promise.resolve([1, 2].forEach((line) => logger.info({ line }, 'closing')))
  await runProcess(({ logger }) =>
    Promise.resolve({ listening: {}, welcome: null, close: () => close(logger) }))`

async function startProgram(env: Record<string, string> = {}) {
  const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '--eval', PROGRAM], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, ...env },
  })
  const { stderr } = child
  let printed = ''
  stderr.setEncoding('utf8').on('data', (text: string) => (printed += text))
  while (!printed.includes('"listening"')) await once(stderr, 'data')
  return { child, printed: () => printed }
}

describe('a process with a variable that is not a setting', () => {
  it.each([
    ['MAYFLY_SMPT_PORT', 'error', 'MAYFLY_SMPT_PORT is not a setting: did you mean MAYFLY_SMTP_PORT?'],
    ['MAYFLY_TEAM_COLOR', 'warn', 'MAYFLY_TEAM_COLOR is not a setting'],
  ] as const)('logs that after its welcome (%s)', async (variable, level, msg) => {
    const { child, printed } = await startProgram({ [variable]: '1' })
    child.kill('SIGTERM')
    await once(child, 'close')
    const lines = printed().trim().split('\n')
    const [listening, explained] = lines.map((each) => JSON.parse(each) as object)
    expect(listening).toMatchObject({ msg: 'listening' })
    expect(explained).toMatchObject({ level: pino.levels.values[level], variable, msg })
  })
})

describe('a process that is ended by a signal', () => {
  it('prints its last lines', async () => {
    const { child, printed } = await startProgram()
    child.kill('SIGTERM')
    expect((await once(child, 'close'))[0]).toBe(0)
    expect(printed()).toMatch(/"draining"[^]*"line":1[^]*"line":2[^]*"msg":"ended"/)
  })

  it('ends even if nobody reads its log any more', async () => {
    const { child } = await startProgram()
    child.stderr.destroy()
    child.kill('SIGTERM')
    try {
      expect((await beforeDeadline(20_000, once(child, 'exit')))[0]).toBe(0)
    } finally {
      child.kill('SIGKILL')
    }
  })
})
