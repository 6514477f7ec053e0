import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { stripVTControlCharacters } from 'node:util'
import { COMPILE_CACHE } from '#test/harness/mayfly-process.js'
import { makeFolder } from '#test/harness/mayfly-with-clock.js'
import { until } from '#test/harness/until.js'

const API_KEY = 'key-of-this-test-in-a-terminal'
// Other systems have another script(1).
const linux = process.platform === 'linux' ? describe : describe.skip

/** Starts Mayfly in a terminal, with script(1) of util-linux. */
function startInTerminal(dataDir: string, env: Record<string, string>) {
  const child = spawn(
    'script',
    ['-qec', `exec '${process.execPath}' dist/apps/standalone/main.js`, '/dev/null'],
    {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        PATH: process.env.PATH,
        ...COMPILE_CACHE,
        MAYFLY_DATA_DIR: dataDir,
        MAYFLY_HTTP_PORT: '0',
        MAYFLY_SMTP_PORT: '0',
        MAYFLY_BOOTSTRAP_API_KEY: API_KEY,
        ...env,
      },
    },
  )
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  return { child, lines: () => stripVTControlCharacters(printed).split(/\r?\n/) }
}

linux('in a terminal, Mayfly', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  const terminals: ReturnType<typeof startInTerminal>[] = []

  beforeEach(async () => {
    folder = await makeFolder()
  })
  afterEach(async () => {
    for (const { child } of terminals.splice(0)) {
      if (child.exitCode === null) {
        child.kill('SIGKILL')
        await once(child, 'close')
      }
    }
    await folder.remove()
  })

  async function start(env: Record<string, string> = {}) {
    const terminal = startInTerminal(folder.path, env)
    terminals.push(terminal)
    await until('the welcome', () => terminal.lines().some((line) => line.startsWith('Press Enter')))
    const [, url = ''] = /HTTP API +(\S+)/.exec(terminal.lines().join('\n')) ?? []
    const ask = async (): Promise<void> => {
      await (await fetch(`${url}/healthz`)).text()
      await (await fetch(`${url}/v1/inboxes`)).text()
    }
    const requests = () => terminal.lines().filter((line) => line.includes('request'))
    return { ...terminal, ask, requests }
  }

  it('prints one line for a request that failed, and none for one that succeeded', async () => {
    const { ask, requests, lines } = await start()
    const before = lines().length
    await ask()
    await until('the line', () => requests().length > 0)
    expect(requests()).toEqual([expect.stringMatching(/INFO.*request.*"status":401/)])
    expect(lines().length).toBe(before + 1)
  })

  it('prints one line for each request if LOG_LEVEL is debug', async () => {
    const { ask, requests } = await start({ LOG_LEVEL: 'debug' })
    const answered = () => requests().filter((line) => /(DEBUG.*"status":200|INFO.*"status":401)/.test(line))
    await ask()
    await until('both lines', () => answered().length === 2)
  })

  it('prints its addresses again at Enter, and ends at Ctrl-C', async () => {
    const { child, lines } = await start()
    const links = () => lines().filter((line) => line.includes('#sign-in='))
    expect(links()).toHaveLength(1)
    child.stdin.write('\n')
    await until('the second welcome', () => links().length === 2)
    expect(lines().filter((line) => line.startsWith('Mayfly is listening'))).toHaveLength(2)
    child.stdin.write('\x03')
    await once(child, 'close')
    expect(child.exitCode).toBe(0)
  })
})
