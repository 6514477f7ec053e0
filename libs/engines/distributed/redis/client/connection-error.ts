import { messageOf, NamedError } from '#libs/runtime/errors.js'
import { tlsError } from '#libs/runtime/tls/tls-error.js'

const TLS_SETTINGS = {
  address: 'REDIS_URL',
  ca: 'REDIS_TLS_CA',
  own: { cert: 'REDIS_TLS_CERT', key: 'REDIS_TLS_KEY' },
} as const

interface ConnectionKind {
  usesTls: boolean
  hasCertificate: boolean
}

/** Describes why the first connection to Redis failed, with the setting to check if there is one. */
export function connectionError(error: unknown, { usesTls, hasCertificate }: ConnectionKind): string {
  const reason = reasonOf(error).trim()
  const known = accessError(error) ?? tlsError(error, TLS_SETTINGS)
  if (known !== null) return known
  if (
    /ECONNRESET|ETIMEDOUT|no answer within|closed|hang up|wrong version number|before secure TLS/i.test(
      reason,
    )
  ) {
    if (!usesTls) return `${reason}: does this port require TLS? Check REDIS_URL`
    const certificate = hasCertificate ? ', and does it accept REDIS_TLS_CERT' : ''
    return `${reason}: does this port use TLS${certificate}? Check REDIS_URL`
  }
  return reason
}

/** Describes why Redis rejects the user, and what to do; null for any other error. */
export function accessError(error: unknown): string | null {
  const reason = reasonOf(error)
  if (/^WRONGPASS/.test(reason)) return 'the user or password in REDIS_URL is wrong'
  if (/^NOAUTH/.test(reason)) return 'a password is required: add the user and password to REDIS_URL'
  if (/^NOPERM/.test(reason)) {
    return `the user in REDIS_URL lacks a permission listed in docs/distributed.md (Redis's ACL): ${reason}`
  }
  return null
}

export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join(', ')
  return messageOf(error)
}

/** Redis can't be used as it is configured. The message says what to do. */
export class RedisSetupError extends NamedError {}
