import { tlsFault } from '#libs/runtime/tls/tls-fault.js'
import { messageOf } from '#libs/runtime/errors.js'
import type { KafkaClientOptions } from './kafka-client.js'

const TLS_SETTINGS = {
  address: 'KAFKA_BROKERS',
  ca: 'KAFKA_TLS_CA',
  own: { cert: 'KAFKA_TLS_CERT', key: 'KAFKA_TLS_KEY' },
} as const

type Credentials = Pick<KafkaClientOptions, 'sasl' | 'tls'>

/** Why Kafka could not be used from the start, and which setting to check, if it is one. */
export function connectionFault(error: unknown, credentials: Credentials): string {
  const reason = messageOf(error).trim()
  const known = logInFault(error, credentials) ?? tlsFault(error, TLS_SETTINGS)
  if (known !== null) return known
  const authorization = chainOf(error).find(({ type }) => type?.endsWith('_AUTHORIZATION_FAILED') === true)
  if (authorization !== undefined) {
    return `${reason}: ${userOf(credentials)} lacks a right that docs/distributed.md lists (Kafka's ACLs)`
  }
  if (/closed connection|before secure TLS|ECONNRESET|socket hang up/i.test(reason)) {
    return `${reason}: ${adviceOnClosing(credentials)}`
  }
  return reason
}

function logInFault(error: unknown, { sasl }: Credentials): string | null {
  const refusal = chainOf(error).find(({ name }) => name === 'KafkaJSSASLAuthenticationError')
  const types = chainOf(error).map(({ type }) => type)
  if (sasl === null) return null
  if (
    types.includes('UNSUPPORTED_SASL_MECHANISM') ||
    /not supported by the server/.test(refusal?.message ?? '')
  ) {
    return `the brokers don't let anybody log in with ${sasl.mechanism}: look at KAFKA_SASL_MECHANISM`
  }
  if (types.includes('ILLEGAL_SASL_STATE')) {
    return 'the brokers take no log-in at this port: unset KAFKA_SASL_MECHANISM, or look at KAFKA_BROKERS'
  }
  if (refusal === undefined) return null
  return (
    `the brokers refuse the log-in of ${sasl.username} with ${sasl.mechanism}: ` +
    'look at KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD'
  )
}

/** Brokers close a connection without a word on which they are spoken to in another way than they expect. */
function adviceOnClosing({ sasl, tls }: Credentials): string {
  if (tls !== null) {
    const certificate = tls.cert === null ? '' : ', and does it take KAFKA_TLS_CERT'
    return `does this port speak TLS${certificate}? Look at KAFKA_TLS and KAFKA_BROKERS`
  }
  const tlsFirst = 'does this port want TLS? Look at KAFKA_TLS'
  return sasl === null ? `${tlsFirst}; or a log-in? Look at KAFKA_SASL_MECHANISM` : tlsFirst
}

function userOf({ sasl }: Credentials): string {
  return sasl === null ? 'who connects here' : `the user ${sasl.username}`
}

interface Fault {
  name: string
  message: string
  type: string | undefined
}

/** An error, what it follows from, and what it is made of. */
function chainOf(error: unknown): Fault[] {
  if (!(error instanceof Error)) return []
  const { name, message, cause } = error
  const type = 'type' in error ? String(error.type) : undefined
  const parts: unknown[] = 'errors' in error && Array.isArray(error.errors) ? error.errors : []
  return [{ name, message, type }, ...[cause, ...parts].flatMap(chainOf)]
}
