import { tlsError } from '#libs/runtime/tls/tls-error.js'
import { messageOf } from '#libs/runtime/errors.js'
import type { KafkaClientOptions } from './kafka-client.js'

const TLS_SETTINGS = {
  address: 'KAFKA_BROKERS',
  ca: 'KAFKA_TLS_CA',
  own: { cert: 'KAFKA_TLS_CERT', key: 'KAFKA_TLS_KEY' },
} as const

type Credentials = Pick<KafkaClientOptions, 'sasl' | 'tls'>

/** Describes why the first connection to Kafka failed, with the setting to check if there is one. */
export function connectionError(error: unknown, credentials: Credentials): string {
  const reason = messageOf(error).trim()
  const known = loginError(error, credentials) ?? tlsError(error, TLS_SETTINGS)
  if (known !== null) return known
  const authorization = chainOf(error).find(({ type }) => type?.endsWith('_AUTHORIZATION_FAILED') === true)
  if (authorization !== undefined) {
    const user = credentials.sasl === null ? 'this client' : `the user ${credentials.sasl.username}`
    return `${reason}: ${user} lacks a permission listed in docs/distributed.md (Kafka's ACLs)`
  }
  if (/closed connection|before secure TLS|ECONNRESET|socket hang up/i.test(reason)) {
    return `${reason}: ${closedConnectionHint(credentials)}`
  }
  return reason
}

function loginError(error: unknown, { sasl }: Credentials): string | null {
  const rejection = chainOf(error).find(({ name }) => name === 'KafkaJSSASLAuthenticationError')
  const types = chainOf(error).map(({ type }) => type)
  if (sasl === null) return null
  if (
    types.includes('UNSUPPORTED_SASL_MECHANISM') ||
    /not supported by the server/.test(rejection?.message ?? '')
  ) {
    return `the brokers do not support the SASL mechanism ${sasl.mechanism}: check KAFKA_SASL_MECHANISM`
  }
  if (types.includes('ILLEGAL_SASL_STATE')) {
    return 'the brokers do not support logins at this port: unset KAFKA_SASL_MECHANISM, or check KAFKA_BROKERS'
  }
  if (rejection === undefined) return null
  return (
    `the brokers reject the login of ${sasl.username} with ${sasl.mechanism}: ` +
    'check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD'
  )
}

/** Brokers close a connection without an error if the client uses another protocol than they expect. */
function closedConnectionHint({ sasl, tls }: Credentials): string {
  if (tls !== null) {
    const certificate = tls.cert === null ? '' : ', and does it accept KAFKA_TLS_CERT'
    return `does this port use TLS${certificate}? Check KAFKA_TLS and KAFKA_BROKERS`
  }
  const needsTls = 'does this port require TLS? Check KAFKA_TLS'
  return sasl === null ? `${needsTls}; or a login? Check KAFKA_SASL_MECHANISM` : needsTls
}

interface Failure {
  name: string
  message: string
  type: string | undefined
}

/** An error with its causes, and with the errors of an AggregateError. */
function chainOf(error: unknown): Failure[] {
  if (!(error instanceof Error)) return []
  const { name, message, cause } = error
  const type = 'type' in error ? String(error.type) : undefined
  const parts: unknown[] = 'errors' in error && Array.isArray(error.errors) ? error.errors : []
  return [{ name, message, type }, ...[cause, ...parts].flatMap(chainOf)]
}
