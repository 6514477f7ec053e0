import { Cluster, type Redis } from 'ioredis'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'

export interface SubscriberConnectionOptions {
  client: RedisClient
  /** What is to be subscribed to after every new connection. */
  channels: () => readonly string[]
  onMessage: (channel: string) => void
  /** Everything is subscribed to again; what was published meanwhile is lost. */
  onRegained: () => void
  onError: (error: unknown) => void
}

const RETRY_MS = 200
const CHANNELS_AT_ONCE = 1_000

/**
 * One connection for all channels, made anew for as long as it takes: to the same node, or in a Cluster to another
 * one. It subscribes by itself, not through ioredis, which doesn't say when it has done so again.
 */
export class SubscriberConnection {
  private current: Redis | null = null
  private retry: NodeJS.Timeout | undefined
  private turn = 0
  private isClosed = false

  constructor(private readonly options: SubscriberConnectionOptions) {}

  /** Resolves once connected; rejects if that fails. */
  async open(): Promise<void> {
    try {
      await this.connect()
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Resolves once the channel's messages come, or it is sure that they will be made up for by `onRegained`. */
  async subscribe(channel: string): Promise<void> {
    const { current } = this
    // Where there is no connection, the next one begins with all channels.
    if (current?.status !== 'ready') return
    try {
      await current.subscribe(channel)
    } catch (error) {
      this.giveUp(current, error)
    }
  }

  unsubscribe(channel: string): void {
    const { current } = this
    if (current?.status !== 'ready') return
    current.unsubscribe(channel).catch((error: unknown) => this.giveUp(current, error))
  }

  close(): void {
    this.isClosed = true
    clearTimeout(this.retry)
    this.current?.disconnect()
  }

  private async connect(): Promise<void> {
    const connection = this.nextNode().duplicate({
      lazyConnect: true,
      retryStrategy: () => null,
      autoResubscribe: false,
      enableOfflineQueue: false,
      readOnly: false,
    })
    this.current = connection
    connection.on('error', (error: unknown) => this.report(error))
    connection.on('close', () => this.lost(connection))
    connection.on('message', (channel: string) => this.options.onMessage(channel))
    await connection.connect()
    const channels = this.options.channels()
    for (let at = 0; at < channels.length; at += CHANNELS_AT_ONCE) {
      await connection.subscribe(...channels.slice(at, at + CHANNELS_AT_ONCE))
    }
  }

  /** In a Cluster each attempt goes to another node. */
  private nextNode(): Redis {
    const { client } = this.options
    if (!(client instanceof Cluster)) return client
    const nodes = client.nodes()
    const node = nodes[this.turn % nodes.length]
    this.turn += 1
    if (node === undefined) throw new Error('no node of the Redis Cluster is known')
    return node
  }

  private giveUp(connection: Redis, error: unknown): void {
    this.report(error)
    connection.disconnect()
    this.lost(connection)
  }

  private lost(connection: Redis): void {
    if (this.current !== connection) return
    this.current = null
    this.regainLater()
  }

  private regainLater(): void {
    if (this.isClosed) return
    clearTimeout(this.retry)
    this.retry = setTimeout(() => {
      this.connect().then(this.options.onRegained, (error: unknown) => {
        if (this.current === null) {
          this.report(error)
          this.regainLater()
        } else {
          this.giveUp(this.current, error)
        }
      })
    }, RETRY_MS)
  }

  private report(error: unknown): void {
    if (!this.isClosed) this.options.onError(error)
  }
}
