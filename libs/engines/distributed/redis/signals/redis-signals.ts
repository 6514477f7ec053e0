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
 * node, or in a Cluster to another one. It is subscribed again here, because ioredis does not report when it has done so.
 *
 * Resolves once it listens. Rejects if the first connection fails, or if the user lacks permission for channels.
 */
export async function openRedisSignals(options: RedisSignalsOptions): Promise<Signals> {
  const { client, prefix, onError } = options
  const listeners = new InProcessSignals()
  /** By channel, resolves once its signals are received, or its listeners will be called after a reconnect. */
  const channels = new Map<string, Promise<void>>()
  const closing = new AbortController()
  let connection: Redis | null = null
  let lost = Promise.withResolvers<undefined>()
  let turn = 0

  await checkPermission(options)
  try {
    await connect()
  } catch (error) {
    await close()
    throw error
  }
  void reconnect()

  return {
    publish(channel, message = '') {
      client.publish(prefix + channel, message).catch(onError)
    },

    async subscribe(channel, listener) {
      const remove = listeners.add(channel, listener)
      const whenListening = channels.get(channel) ?? send('subscribe', channel)
      channels.set(channel, whenListening)
      await whenListening
      return () => {
        remove()
        if (listeners.hasListeners(channel) || !channels.delete(channel)) return
        void send('unsubscribe', channel)
      }
    },

    close,
  }

  async function close(): Promise<void> {
    closing.abort()
    connection?.disconnect()
    await listeners.close()
  }

  /** Never rejects: after a failure, the next connection subscribes to all channels. */
  async function send(command: 'subscribe' | 'unsubscribe', channel: string): Promise<void> {
    const current = connection
    if (current?.status !== 'ready') return
    try {
      await current[command](prefix + channel)
    } catch (error) {
      if (current === connection) drop(error)
    }
  }

  async function connect(): Promise<void> {
    const next = nextNode().duplicate({
      lazyConnect: true,
      retryStrategy: () => null,
      autoResubscribe: false,
      enableOfflineQueue: false,
      readOnly: false,
    })
    const end = Promise.withResolvers<undefined>()
    connection = next
    lost = end
    next.on('close', () => end.resolve(undefined))
    next.on('error', report)
    next.on('message', (name: string, message: string) =>
      listeners.publish(name.slice(prefix.length), message),
    )
    await next.connect()
    const names = [...channels.keys()].map((channel) => prefix + channel)
    for (const chunk of chunksOf(names, CHANNELS_AT_ONCE)) await next.subscribe(...chunk)
  }

  /** In a Cluster each attempt uses another node. */
  function nextNode(): Redis {
    if (!(client instanceof Cluster)) return client
    const nodes = client.nodes()
    const node = nodes[turn % nodes.length]
    turn += 1
    if (node === undefined) throw new Error('no node of the Redis Cluster is known')
    return node
  }

  /** Replaces each connection that is lost, until the signals are closed. */
  async function reconnect(): Promise<void> {
    for (;;) {
      await lost.promise
      await pauseUntilAborted(RETRY_MS, closing.signal)
      if (closing.signal.aborted) return
      try {
        await connect()
        // Signals published in between are lost.
        for (const channel of channels.keys()) listeners.publish(channel)
      } catch (error) {
        drop(error)
      }
    }
  }

  /** Does not wait until the connection is closed, which takes long if Redis does not answer. */
  function drop(error: unknown): void {
    report(error)
    connection?.disconnect()
    lost.resolve(undefined)
  }

  function report(error: unknown): void {
    if (!closing.signal.aborted) onError(error)
  }
}
