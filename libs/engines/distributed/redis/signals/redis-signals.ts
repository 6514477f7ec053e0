import { Cluster, type Redis } from 'ioredis'
import { messageOf } from '#libs/runtime/errors.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { InProcessSignals, type Signals } from '#libs/ports/signals/signals.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { pauseUntilAborted } from '#libs/runtime/timing.js'

/*
 * Relies on Redis pub/sub, which drops messages that it can't deliver at once. So after a connection was lost, every
 * listener is called, because it may have missed a signal. In a Cluster a message reaches the subscribers of every node.
 */

interface RedisSignalsOptions {
  /** Used to publish. The caller closes it. A further connection with the same options is used to listen. */
  client: RedisClient
  prefix: string
  /** Called if a signal could not be sent, or a connection was lost. The listeners are called later nevertheless. */
  onError: (error: unknown) => void
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
  private readonly listeners = new InProcessSignals()
  /** By channel, resolves once its signals are received, or its listeners will be called after a reconnect. */
  private readonly channels = new Map<string, Promise<void>>()
  private readonly closing = new AbortController()
  private connection: Redis | null = null
  private lost = Promise.withResolvers<undefined>()
  private turn = 0

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
    void signals.reconnect()
    return signals
  }

  publish(channel: string): void {
    const { client, prefix, onError } = this.options
    client.publish(prefix + channel, '').catch(onError)
  }

  async subscribe(channel: string, listener: () => void): Promise<() => void> {
    const remove = this.listeners.add(channel, listener)
    const whenListening = this.channels.get(channel) ?? this.send('subscribe', channel)
    this.channels.set(channel, whenListening)
    await whenListening
    return () => {
      remove()
      if (this.listeners.hasListeners(channel) || !this.channels.delete(channel)) return
      void this.send('unsubscribe', channel)
    }
  }

  async close(): Promise<void> {
    this.closing.abort()
    this.connection?.disconnect()
    await this.listeners.close()
  }

  /** Never rejects: after a failure, the next connection subscribes to all channels. */
  private async send(command: 'subscribe' | 'unsubscribe', channel: string): Promise<void> {
    const { connection } = this
    if (connection?.status !== 'ready') return
    try {
      await connection[command](this.options.prefix + channel)
    } catch (error) {
      if (connection === this.connection) this.drop(error)
    }
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
    this.lost = Promise.withResolvers()
    const { resolve } = this.lost
    connection.on('close', () => resolve(undefined))
    connection.on('error', (error: unknown) => this.report(error))
    connection.on('message', (name: string) => this.listeners.publish(name.slice(prefix.length)))
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

  /** Replaces each connection that is lost, until the signals are closed. */
  private async reconnect(): Promise<void> {
    const { signal } = this.closing
    for (;;) {
      await this.lost.promise
      await pauseUntilAborted(RETRY_MS, signal)
      if (signal.aborted) return
      try {
        await this.connect()
        // Signals published in between are lost.
        for (const channel of this.channels.keys()) this.listeners.publish(channel)
      } catch (error) {
        this.drop(error)
      }
    }
  }

  /** Does not wait until the connection is closed, which takes long if Redis does not answer. */
  private drop(error: unknown): void {
    this.report(error)
    this.connection?.disconnect()
    this.lost.resolve(undefined)
  }

  private report(error: unknown): void {
    if (!this.closing.signal.aborted) this.options.onError(error)
  }
}
