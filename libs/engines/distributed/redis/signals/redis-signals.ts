import { Cluster, type Redis } from 'ioredis'
import { messageOf } from '#libs/runtime/errors.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Listeners, type Signals } from '#libs/ports/signals/signals.js'
import { chunksOf } from '#libs/runtime/chunks.js'

/*
 * Relies on Redis pub/sub, which drops messages that it can't deliver at once. So after a connection was lost, every
 * listener is called, because it may have missed a signal. In a Cluster a message reaches the subscribers of every node.
 */

interface RedisSignalsOptions {
  /** Used to publish. The caller closes it. A further connection with the same options is used to listen. */
  client: RedisClient
  /** The prefix of every channel name. */
  prefix: string
  /** Called if a signal could not be sent, or a connection was lost. The listeners are called later nevertheless. */
  onError: (error: unknown) => void
}

interface Channel {
  listeners: Listeners
  /** Resolves once signals are received, or listeners will be called after a reconnect. */
  whenListening: Promise<void>
}

/**
 * A new user of Redis 7 has no permission for any channel. Without signals everything would work, but each change would be
 * visible half a second late.
 */
async function checkPermission({ client, prefix }: RedisSignalsOptions): Promise<void> {
  try {
    await client.publish(`${prefix}start`, '')
  } catch (cause) {
    const reason = messageOf(cause)
    const failure = `Redis rejects channels with the prefix ${prefix} (REDIS_URL): ${reason}`
    throw new Error(reason.startsWith('NOPERM') ? `${failure}: allow its user &${prefix}*` : failure, {
      cause,
    })
  }
}

const RETRY_MS = 200
const CHANNELS_AT_ONCE = 1_000

/**
 * Signals between processes. One connection listens to all channels, and is replaced until a new one succeeds: to the same
 * node, or in a Cluster to another one. This class resubscribes, because ioredis does not report when it has done so.
 */
export class RedisSignals implements Signals {
  private readonly channels = new Map<string, Channel>()
  private connection: Redis | null = null
  private retry: NodeJS.Timeout | undefined
  private turn = 0
  private isClosed = false

  private constructor(private readonly options: RedisSignalsOptions) {}

  /** Resolves once it listens. Rejects if the first connection fails, or if the user lacks permission for channels. */
  static async open(options: RedisSignalsOptions): Promise<RedisSignals> {
    await checkPermission(options)
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
    const known = this.channels.get(channel) ?? {
      listeners: new Listeners(),
      whenListening: this.listenTo(channel),
    }
    this.channels.set(channel, known)
    const remove = known.listeners.add(listener)
    await known.whenListening
    return () => {
      remove()
      if (known.listeners.isEmpty && this.channels.get(channel) === known) this.unsubscribe(channel)
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

  private callListeners(channel: string): void {
    this.channels.get(channel)?.listeners.call()
  }

  /** Resolves once the channel's signals are received, or will be after a reconnect. Never rejects. */
  private async listenTo(channel: string): Promise<void> {
    const { connection } = this
    // Without a connection, the next one subscribes to all channels.
    if (connection?.status !== 'ready') return
    try {
      await connection.subscribe(this.options.prefix + channel)
    } catch (error) {
      this.replace(connection, error)
    }
  }

  private unsubscribe(channel: string): void {
    const { connection } = this
    this.channels.delete(channel)
    if (connection?.status !== 'ready') return
    connection
      .unsubscribe(this.options.prefix + channel)
      .catch((error: unknown) => this.replace(connection, error))
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
    connection.on('close', () => this.onLost(connection))
    connection.on('message', (name: string) => this.callListeners(name.slice(prefix.length)))
    await connection.connect()
    const names = [...this.channels.keys()].map((channel) => prefix + channel)
    for (const chunk of chunksOf(names, CHANNELS_AT_ONCE)) await connection.subscribe(...chunk)
  }

  /** In a Cluster each attempt uses another node. */
  private nextNode(): Redis {
    const { client } = this.options
    if (!(client instanceof Cluster)) return client
    const nodes = client.nodes()
    const node = nodes[this.turn % nodes.length]
    this.turn += 1
    if (node === undefined) throw new Error('no node of the Redis Cluster is known')
    return node
  }

  private replace(connection: Redis, error: unknown): void {
    this.report(error)
    connection.disconnect()
    this.onLost(connection)
  }

  private onLost(connection: Redis): void {
    if (this.connection !== connection) return
    this.connection = null
    this.connectLater()
  }

  private connectLater(): void {
    if (this.isClosed) return
    clearTimeout(this.retry)
    this.retry = setTimeout(() => void this.reconnect(), RETRY_MS)
  }

  private async reconnect(): Promise<void> {
    try {
      await this.connect()
    } catch (error) {
      if (this.connection !== null) {
        this.replace(this.connection, error)
        return
      }
      this.report(error)
      this.connectLater()
      return
    }
    // Signals published in between are lost.
    for (const channel of this.channels.keys()) this.callListeners(channel)
  }

  private report(error: unknown): void {
    if (!this.isClosed) this.options.onError(error)
  }
}
