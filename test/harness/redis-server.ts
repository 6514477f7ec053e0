import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { until } from './until.js'

/** A Redis of a test's own, which it may stop, hang and start again. Nothing of it is kept on disk. */
export class RedisServer {
  private process: ReturnType<typeof spawn> | null = null

  private constructor(
    readonly port: number,
    private readonly dir: string,
    private readonly settings: readonly string[],
  ) {}

  /** Further settings as for the command line: `['--maxmemory-policy', 'allkeys-lru']`. */
  static async start(settings: readonly string[] = []): Promise<RedisServer> {
    const dir = await mkdtemp(join(tmpdir(), 'mayfly-redis-'))
    const server = new RedisServer(await freePort(), dir, settings)
    await server.run()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Empty, under the same address. */
  async run(): Promise<void> {
    const place = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.dir]
    const args = [...place, '--save', '', '--appendonly', 'no', ...this.settings]
    this.process = spawn('redis-server', args, { stdio: 'ignore' })
    const probe = new Redis(this.port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => 50 })
    probe.on('error', () => undefined)
    // Also with a password set it has answered.
    await until('redis-server to answer', () => probe.ping().catch((error: unknown) => isReply(error)))
    probe.disconnect()
  }

  /** Takes connections and answers nothing, until `resume`. */
  hang(): void {
    this.process?.kill('SIGSTOP')
  }

  resume(): void {
    this.process?.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    const { process } = this
    this.process = null
    if (process === null) return
    const exit = once(process, 'exit')
    process.kill('SIGKILL')
    await exit
  }

  async close(): Promise<void> {
    await this.kill()
    await rm(this.dir, { recursive: true, force: true })
  }
}

function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}
