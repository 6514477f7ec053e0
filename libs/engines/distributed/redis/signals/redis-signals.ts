import { Cluster, type Redis } from 'ioredis'
import { messageOf } from '#libs/runtime/errors.js'
import { runsOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { Signals } from '#libs/ports/signals/signals.js'

/*
 * Relies on Redis pub/sub, which forgets what it can't deliver at once: after every connection that was lost each
 * listener is called, since its signal may have gone by. In a Cluster every node passes on what any was given.
 */

interface RedisSignalsOptions {
  /** Publishes; stays the caller's, who closes it. A connection of its own is made after it for listening. */
  client: RedisClient
  /** Begins the name of every channel. */
  prefix: string
  /** Told of signals that could not be sent and connections that were lost; both are made up for. */
  onError: (error: unknown) => void
}

interface Channel {
  /** One function of its own for each subscription that has not ended. */
  listeners: Set<() => void>
  /** Resolves once its signals come, or will be made up for. */
  isHeard: Promise<void>
}

/** A new user of Redis 7 may use no channel: without signals all would go on, each change half a second late. */
async function mayPublish({ client, prefix }: RedisSignalsOptions): Promise<void> {
  try {
    await client.publish(`${prefix}start`, '')
  } catch (cause) {
    const reason = messageOf(cause)
    const what = `Redis passes no signals on channels that begin with ${prefix} (REDIS_URL): ${reason}`
    throw new Error(reason.startsWith('NOPERM') ? `${what}: allow its user &${prefix}*` : what, { cause })
  }
}

const RETRY_MS = 200
const CHANNELS_AT_ONCE = 1_000

/**
 * Signals between processes. One connection listens to all channels, and is made anew for as long as it takes: to the
 * same node, or in a Cluster to another one. It subscribes by itself, not through ioredis, which doesn't say when it
 * has done so again.
 */
export class RedisSignals implements Signals {
  private readonly channels = new Map<string, Channel>()
  private connection: Redis | null = null
  private retry: NodeJS.Timeout | undefined
  private turn = 0
  private isClosed = false

  private constructor(private readonly options: RedisSignalsOptions) {}

  /** Resolves once it listens; rejects if the first connection fails, or channels are not allowed. */
  static async open(options: RedisSignalsOptions): Promise<RedisSignals> {
    await mayPublish(options)
    const signals = new RedisSignals(options)
    try {
      await signals.connect()
    } catch (error) {
      await signals.close()
      throw error
    }
    return signals
  }

  publish(channel: string): void {
    const { client, prefix, onError } = this.options
    client.publish(prefix + channel, '').catch(onError)
  }

  async subscribe(channel: string, listener: () => void): Promise<() => void> {
    // A function of its own, since a listener may be subscribed more than once.
    const call = () => listener()
    const heard = this.channels.get(channel) ?? { listeners: new Set(), isHeard: this.listenTo(channel) }
    this.channels.set(channel, heard)
    heard.listeners.add(call)
    await heard.isHeard
    return () => {
      const hasEnded = !heard.listeners.delete(call)
      if (!hasEnded && heard.listeners.size === 0) this.forget(channel)
    }
  }

  close(): Promise<void> {
    this.isClosed = true
    for (const { listeners } of this.channels.values()) listeners.clear()
    this.channels.clear()
    clearTimeout(this.retry)
    this.connection?.disconnect()
    return Promise.resolve()
  }

  private ring(channel: string): void {
    const listeners = this.channels.get(channel)?.listeners ?? new Set()
    for (const call of listeners) {
      queueMicrotask(() => {
        if (listeners.has(call)) call()
      })
    }
  }

  /** Resolves once the channel's signals come, or it is sure that a new connection will make up for them. */
  private async listenTo(channel: string): Promise<void> {
    const { connection } = this
    // Without a connection, the next one begins with all channels.
    if (connection?.status !== 'ready') return
    try {
      await connection.subscribe(this.options.prefix + channel)
    } catch (error) {
      this.giveUp(connection, error)
    }
  }

  private forget(channel: string): void {
    const { connection } = this
    this.channels.delete(channel)
    if (connection?.status !== 'ready') return
    connection
      .unsubscribe(this.options.prefix + channel)
      .catch((error: unknown) => this.giveUp(connection, error))
  }

  private async connect(): Promise<void> {
    const { prefix } = this.options
    const connection = this.nextNode().duplicate({
      lazyConnect: true,
      retryStrategy: () => null,
      autoResubscribe: false,
      enableOfflineQueue: false,
      readOnly: false,
    })
    this.connection = connection
    connection.on('error', (error: unknown) => this.report(error))
    connection.on('close', () => this.lost(connection))
    connection.on('message', (name: string) => this.ring(name.slice(prefix.length)))
    await connection.connect()
    const names = [...this.channels.keys()].map((channel) => prefix + channel)
    for (const run of runsOf(names, CHANNELS_AT_ONCE)) await connection.subscribe(...run)
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
    if (this.connection !== connection) return
    this.connection = null
    this.connectLater()
  }

  private connectLater(): void {
    if (this.isClosed) return
    clearTimeout(this.retry)
    this.retry = setTimeout(() => void this.connectAgain(), RETRY_MS)
  }

  private async connectAgain(): Promise<void> {
    try {
      await this.connect()
    } catch (error) {
      if (this.connection !== null) {
        this.giveUp(this.connection, error)
        return
      }
      this.report(error)
      this.connectLater()
      return
    }
    // What was published meanwhile is lost.
    for (const channel of this.channels.keys()) this.ring(channel)
  }

  private report(error: unknown): void {
    if (!this.isClosed) this.options.onError(error)
  }
}
