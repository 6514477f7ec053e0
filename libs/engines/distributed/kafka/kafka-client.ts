import { createRequire } from 'node:module'
import { Kafka, logLevel, type LogEntry } from 'kafkajs'
import { LRUCache } from 'lru-cache'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import { messageOf } from '#libs/runtime/errors.js'
import { beforeDeadline } from '#libs/runtime/timing/waiting.js'

checkOnlyWhatIsPending()

export interface KafkaClientOptions {
  /** `host:port` each; any of them leads to all. */
  brokers: readonly string[]
  clientId: string
  sasl: {
    mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
    username: string
    password: string
  } | null
  /** PEM text; null as a whole for plain connections, `ca` null for the system's authorities. */
  tls: { ca: string | null; cert: string | null; key: string | null } | null
  /** Called with what fails in the background, where it is tried again, and with what was being done. */
  onError: (error: unknown, during: string) => void
}

/** After that long without an answer a caller gets LogUnavailableError. */
export const ANSWER_WITHIN_MS = 10_000

const CONNECT_WITHIN_MS = 3_000
const REQUEST_WITHIN_MS = 6_000
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 4 }
const REPEAT_AFTER_MS = 10_000

/** kafkajs errors that are normal operation, or that also reach the caller as a rejection or CRASH event. */
const ORDINARY =
  /^Response \w+\(key|^Crash: |rebalanc|re-joining|Response without match|not the leader for|Offset out of range/i

/**
 * A client of its own: kafkajs keeps the group offsets of a client's consumers in one place, so that two consumers
 * of one group must not share a client.
 */
export function makeKafka(options: KafkaClientOptions): Kafka {
  const { brokers, clientId, sasl, tls, onError } = options
  return new Kafka({
    brokers: [...brokers],
    clientId,
    ...(sasl === null ? {} : { sasl: saslOf(sasl) }),
    ...(tls === null
      ? {}
      : { ssl: { ca: tls.ca ?? undefined, cert: tls.cert ?? undefined, key: tls.key ?? undefined } }),
    connectionTimeout: CONNECT_WITHIN_MS,
    authenticationTimeout: CONNECT_WITHIN_MS,
    requestTimeout: REQUEST_WITHIN_MS,
    retry: RETRY,
    logLevel: logLevel.ERROR,
    logCreator: () => reporter(onError),
  })
}

/** The type of kafkajs has a member for each mechanism, and takes no object with a union of them. */
function saslOf({ mechanism, ...user }: NonNullable<KafkaClientOptions['sasl']>) {
  if (mechanism === 'plain') return { mechanism, ...user }
  if (mechanism === 'scram-sha-256') return { mechanism, ...user }
  return { mechanism, ...user }
}

/** Passes kafkajs's errors on, each text at most once in a while. */
function reporter(onError: KafkaClientOptions['onError']): (entry: LogEntry) => void {
  const reported = new LRUCache<string, true>({ max: 100, ttl: REPEAT_AFTER_MS })
  return ({ namespace, log }) => {
    const { broker, error } = log as { broker?: unknown; error?: unknown }
    const cause = typeof error === 'string' && error !== log.message ? `: ${error}` : ''
    const text = `${log.message}${cause}${typeof broker === 'string' ? ` (${broker})` : ''}`
    if (ORDINARY.test(text) || reported.has(text)) return
    reported.set(text, true)
    onError(new Error(text), `kafkajs ${namespace}`)
  }
}

/** Resolves as `asked`; rejects with a LogUnavailableError that begins with `what` if that fails or takes too long. */
export async function within<Result>(ms: number, what: string, asked: Promise<Result>): Promise<Result> {
  try {
    return await beforeDeadline(ms, asked)
  } catch (cause) {
    throw new LogUnavailableError(`${what}: ${messageOf(cause)}`, { cause })
  }
}

interface RequestQueue {
  pending: readonly unknown[]
  scheduleCheckPendingRequests(): void
}

/**
 * kafkajs 2.2.4 checks every millisecond, on every connection, whether a request waits to be sent, for as long as the
 * connection lasts (github.com/tulios/kafkajs/issues/1704), which costs a process with a few consumers some percent
 * of a core and warns of a negative timeout. After this call it checks only while one waits.
 */
function checkOnlyWhatIsPending(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue/index.js') as {
    prototype: RequestQueue
  }
  const schedule = Object.getOwnPropertyDescriptor(prototype, 'scheduleCheckPendingRequests')?.value as
    ((this: RequestQueue) => void) | undefined
  if (schedule === undefined) return
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this)
  }
}
