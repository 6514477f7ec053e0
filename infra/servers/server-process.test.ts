import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '#test/harness/until.js'
import { freePort, isFree } from './ports.js'
import { ServerProcess, type Launch } from './server-process.js'

const MODULE = join(process.cwd(), 'dist/infra/servers/server-process.js')

/** Listens, and ignores all signals except SIGKILL. */
const SERVER = `
  process.on('SIGINT', () => {}).on('SIGTERM', () => {})
  require('node:net').createServer().listen(Number(process.argv[1]), '127.0.0.1')
`
const OWNER = `
  const [module, folder, port, server] = process.argv.slice(1)
  const { ServerProcess } = await import(module)
  const command = [process.execPath, '-e', server, port]
  const life = { endsWithOwner: true, removing: folder }
  await ServerProcess.start({ name: 'a server', command, logPath: folder + '/log', life }, async () => true, 1000)
  setInterval(() => {}, 1000)
`

describe('a server process', () => {
  let folder: string

  beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'mayfly-server-'))))
  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('ends with its owner in any case, and its folder is removed', async () => {
    const port = await freePort()
    const args = ['--input-type=module', '-e', OWNER, MODULE, folder, String(port), SERVER]
    const owner = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
    await until('the server to listen', async () => !(await isFree(port)))
    owner.kill('SIGKILL')
    await until('the server to end', () => isFree(port))
    await until('its folder to go', () => !existsSync(folder))
  })

  it('that ends before it is ready is reported with its last output', async () => {
    const launch = launchOf('echo the disk is upside down; exit 3')
    await expect(ServerProcess.start(launch, () => Promise.resolve(false), 10_000)).rejects.toThrow(
      /ended before it was ready.*the disk is upside down/s,
    )
  })

  it('whose program is missing is reported with the package to install', async () => {
    const { PATH } = process.env
    process.env.PATH = '/nowhere'
    try {
      const launch = { ...launchOf(''), command: ['redis-server'] as const }
      await expect(ServerProcess.start(launch, () => Promise.resolve(true), 200)).rejects.toThrow(
        'redis-server is not installed: apt-get install redis-server',
      )
    } finally {
      process.env.PATH = PATH
    }
  })

  it('that does not become ready is killed', async () => {
    const launch = launchOf('echo $$; exec sleep 60')
    const start = ServerProcess.start(launch, () => Promise.resolve(false), 3_000)
    await expect(start).rejects.toThrow('was not ready within 3000 ms')
    const pid = Number(await readFile(launch.logPath, 'utf8'))
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })

  function launchOf(script: string): Launch {
    const life = { endsWithOwner: true, removing: null } as const
    return { name: 'a server', command: ['sh', '-c', script], logPath: join(folder, 'log'), life }
  }
})
