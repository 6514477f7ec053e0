import { messageOf } from '#libs/runtime/errors.js'
import { tlsFault } from '#libs/runtime/tls/tls-fault.js'

const TLS_SETTINGS = {
  address: 'REDIS_URL',
  ca: 'REDIS_TLS_CA',
  own: { cert: 'REDIS_TLS_CERT', key: 'REDIS_TLS_KEY' },
} as const

/** How it was spoken to. */
interface Spoken {
  isSecured: boolean
  hasCertificate: boolean
}

/** Why a Redis could not be used from the start, and which setting to check, if it is one. */
export function connectionFault(error: unknown, { isSecured, hasCertificate }: Spoken): string {
  const reason = reasonOf(error).trim()
  const known = refusalOf(error) ?? tlsFault(error, TLS_SETTINGS)
  if (known !== null) return known
  if (
    /ECONNRESET|ETIMEDOUT|no answer within|closed|hang up|wrong version number|before secure TLS/i.test(
      reason,
    )
  ) {
    if (!isSecured) return `${reason}: does this port want TLS? Look at REDIS_URL`
    const certificate = hasCertificate ? ', and does it take REDIS_TLS_CERT' : ''
    return `${reason}: does this port speak TLS${certificate}? Look at REDIS_URL`
  }
  return reason
}

/** What Redis holds against the user, and what to do; null if the error is another. */
export function refusalOf(error: unknown): string | null {
  const reason = reasonOf(error)
  if (/^WRONGPASS/.test(reason)) return 'it refuses the user and the password in REDIS_URL'
  if (/^NOAUTH/.test(reason)) return 'it asks for a password: write user and password in REDIS_URL'
  if (/^NOPERM/.test(reason)) {
    return `the user in REDIS_URL lacks a right that docs/distributed.md lists (Redis's ACL): ${reason}`
  }
  return null
}

export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join(', ')
  return messageOf(error)
}

/** Redis can't be used as it is: an operator's affair. The message says what to do. */
export class RedisSetupError extends Error {
  override readonly name = 'RedisSetupError'
}
