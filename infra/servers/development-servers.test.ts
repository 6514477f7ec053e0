import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describeWith } from '#test/harness/tools.js'
import type { Kind } from './development-servers.js'
import { freePort, isFree } from './ports.js'

const run = promisify(execFile)
const MAIN = join(process.cwd(), 'dist/infra/servers/main.js')
const WITHIN_MS = 90_000

describeWith('kafka')('npm run kafka:start', () => {
  it(
    'starts it in the background until it is stopped',
    () => startsAndStops('kafka', 'KAFKA_BROKERS='),
    WITHIN_MS,
  )
})

describeWith('redis-server')('npm run redis:start', () => {
  it(
    'starts it in the background until it is stopped',
    () => startsAndStops('redis', 'REDIS_URL=redis://'),
    WITHIN_MS,
  )
})

describeWith('clickhouse')('npm run clickhouse:start', () => {
  it(
    'starts it in the background until it is stopped',
    () => startsAndStops('clickhouse', 'CLICKHOUSE_URL=http://'),
    WITHIN_MS,
  )
})

async function startsAndStops(kind: Kind, setting: string): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'mayfly-servers-'))
  const port = await freePort()
  const start = () => run(process.execPath, [MAIN, 'start', kind, '--folder', root, '--port', String(port)])
  const stop = () => run(process.execPath, [MAIN, 'stop', kind, '--folder', root])
  try {
    expect((await start()).stdout).toContain(`${setting}127.0.0.1:${port}`)
    expect(await isFree(port)).toBe(false)
    await expect(start()).rejects.toThrow('is already running')

    expect((await stop()).stdout).toMatch(/^Ended \d+\.$/m)
    expect(await isFree(port)).toBe(true)
    expect((await stop()).stdout).toContain('was started here')
  } finally {
    await stop()
    await rm(root, { recursive: true, force: true })
  }
}

describe('a port that is in use', () => {
  it('is reported, and nothing is started', async () => {
    const root = await mkdtemp(join(tmpdir(), 'mayfly-servers-'))
    const port = await freePort()
    const server = createServer().listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
      const args = [MAIN, 'start', 'redis', '--folder', root, '--port', String(port)]
      await expect(run(process.execPath, args)).rejects.toThrow(`127.0.0.1:${port} is taken`)
    } finally {
      server.close()
      await rm(root, { recursive: true, force: true })
    }
  })
})
