import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { beforeDeadline } from '#libs/runtime/timing.js'

const MODULE = resolve('dist/libs/runtime/process/run-process.js')
/** A process that logs two lines at once while it closes. */
const PROGRAM = `
  import { runProcess } from ${JSON.stringify(MODULE)}
  setInterval(() => undefined, 1_000)
  const close = (logger) => Promise.resolve([1, 2].forEach((line) => logger.info({ line }, 'closing')))
  await runProcess(({ logger }) =>
    Promise.resolve({ listening: {}, welcome: '', close: () => close(logger) }))`

async function startProgram() {
  const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '--eval', PROGRAM], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH },
  })
  const { stderr } = child
  let printed = ''
  stderr.setEncoding('utf8').on('data', (text: string) => (printed += text))
  while (!printed.includes('"listening"')) await once(stderr, 'data')
  return { child, printed: () => printed }
}

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
