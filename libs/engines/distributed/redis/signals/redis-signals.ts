import { messageOf } from '#libs/runtime/fault/message-of.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import { SubscriberConnection } from './subscriber-connection.js'

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
