import { createRequire } from 'node:module'
import { Kafka, logLevel, type LogEntry } from 'kafkajs'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import { messageOf } from '#libs/runtime/errors.js'
import { beforeDeadline } from '#libs/runtime/timing.js'

checkRequestsOnlyWhilePending()

export interface KafkaClientOptions {
  /** `host:port` of some brokers, from which the client discovers all others. */
  brokers: readonly string[]
  clientId: string
  sasl: {
    mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
    username: string
    password: string
  } | null
  /** PEM text. Null for connections without TLS; `ca` is null for the system's authorities. */
  tls: { ca: string | null; cert: string | null; key: string | null } | null
  /** Called with each failure in the background, which is retried, and with what was being done. */
  onError: (error: unknown, during: string) => void
}

/** After this time without an answer, a call rejects with LogUnavailableError. */
export const ANSWER_WITHIN_MS = 10_000

const CONNECT_TIMEOUT_MS = 3_000
const REQUEST_TIMEOUT_MS = 6_000
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 4 }

/** Errors of kafkajs that are part of normal operation, or that the caller also gets as a rejection or CRASH event. */
const NOT_REPORTED =
  /^Response \w+\(key|^Crash: |rebalanc|re-joining|Response without match|not the leader for|Offset out of range/i

/**
 * Creates a client. kafkajs keeps the offsets of all consumers of a client together, so two consumers of the same group
 * must not share a client.
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
    connectionTimeout: CONNECT_TIMEOUT_MS,
    authenticationTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: RETRY,
    logLevel: logLevel.ERROR,
    logCreator: () => reporter(onError),
  })
}

/** The type of kafkajs has a member for each mechanism, and does not accept a union of mechanisms. */
function saslOf({ mechanism, ...user }: NonNullable<KafkaClientOptions['sasl']>) {
  if (mechanism === 'plain') return { mechanism, ...user }
  if (mechanism === 'scram-sha-256') return { mechanism, ...user }
  return { mechanism, ...user }
}

function reporter(onError: KafkaClientOptions['onError']): (entry: LogEntry) => void {
  return ({ namespace, log }) => {
    const { broker, error } = log as { broker?: unknown; error?: unknown }
    const cause = typeof error === 'string' && error !== log.message ? `: ${error}` : ''
    const text = `${log.message}${cause}${typeof broker === 'string' ? ` (${broker})` : ''}`
    if (!NOT_REPORTED.test(text)) onError(new Error(text), `kafkajs ${namespace}`)
  }
}

/**
 * Resolves as `request` does. If it rejects or takes too long, rejects with a LogUnavailableError whose message starts with
 * `failure`.
 */
export async function within<Result>(ms: number, failure: string, request: Promise<Result>): Promise<Result> {
  try {
    return await beforeDeadline(ms, request)
  } catch (cause) {
    throw new LogUnavailableError(`${failure}: ${messageOf(cause)}`, { cause })
  }
}

interface RequestQueue {
  pending: readonly unknown[]
  scheduleCheckPendingRequests(): void
}

/**
 * kafkajs 2.2.4 checks every millisecond on every connection whether a request is pending
 * (github.com/tulios/kafkajs/issues/1704). That costs a process with a few consumers some percent of a core, and Node
 * warns of negative timeouts. After this call kafkajs checks only while a request is pending.
 */
function checkRequestsOnlyWhilePending(): void {
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
