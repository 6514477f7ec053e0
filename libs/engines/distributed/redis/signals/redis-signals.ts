import { Cluster, type Redis } from 'ioredis'
import { messageOf } from '#libs/runtime/errors.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { Signals } from '#libs/ports/signals/signals.js'

/*
 * Relies on Redis pub/sub, which forgets what it can't deliver at once: after every connection that was lost each
 * listener is called, since its signal may have gone by. In a Cluster every node passes on what any was given.
 */

export interface RedisSignalsOptions {
  /** Publishes; stays the caller's, who closes it. A connection of its own is made after it for listening. */
  client: RedisClient
  /** Begins the name of every channel. */
  prefix: string
  /** Told of signals that could not be sent and connections that were lost; both are made up for. */
  onError: (error: unknown) => void
}

interface Subscription {
  listener: () => void
  isOpen: boolean
}

interface Channel {
  subscriptions: Set<Subscription>
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

/** Signals between processes. */
export class RedisSignals implements Signals {
  private readonly channels = new Map<string, Channel>()
  private readonly connection: SubscriberConnection

  private constructor(private readonly options: RedisSignalsOptions) {
    const { client, prefix, onError } = options
    this.connection = new SubscriberConnection({
      client,
      channels: () => [...this.channels.keys()].map((channel) => prefix + channel),
      onMessage: (name) => this.ring(name.slice(prefix.length)),
      onRegained: () => {
        for (const channel of this.channels.keys()) this.ring(channel)
      },
      onError,
    })
  }

  /** Resolves once it listens; rejects if the first connection fails, or channels are not allowed. */
  static async open(options: RedisSignalsOptions): Promise<RedisSignals> {
    await mayPublish(options)
    const signals = new RedisSignals(options)
    await signals.connection.open()
    return signals
  }

  publish(channel: string): void {
    const { client, prefix, onError } = this.options
    client.publish(prefix + channel, '').catch(onError)
  }

  async subscribe(channel: string, listener: () => void): Promise<() => void> {
    const subscription = { listener, isOpen: true }
    const heard = this.channels.get(channel) ?? this.listenTo(channel)
    heard.subscriptions.add(subscription)
    await heard.isHeard
    return () => {
      if (!subscription.isOpen) return
      subscription.isOpen = false
      heard.subscriptions.delete(subscription)
      if (heard.subscriptions.size > 0) return
      this.channels.delete(channel)
      this.connection.unsubscribe(this.options.prefix + channel)
    }
  }

  close(): Promise<void> {
    for (const { subscriptions } of this.channels.values()) {
      for (const subscription of subscriptions) subscription.isOpen = false
    }
    this.channels.clear()
    this.connection.close()
    return Promise.resolve()
  }

  private listenTo(channel: string): Channel {
    const isHeard = this.connection.subscribe(this.options.prefix + channel)
    const heard = { subscriptions: new Set<Subscription>(), isHeard }
    this.channels.set(channel, heard)
    return heard
  }

  private ring(channel: string): void {
    for (const subscription of this.channels.get(channel)?.subscriptions ?? []) {
      queueMicrotask(() => {
        if (subscription.isOpen) subscription.listener()
      })
    }
  }
}

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
