import { hash, randomInt } from 'node:crypto'
import { makeSecret, SECRET_DIGITS } from '#libs/account/api-key.js'

/** How a secret is stored: hex SHA-256. Secrets are random, so no slow hash is needed. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret)
}

export function randomSecret(environment: string): string {
  return makeSecret(
    environment,
    Array.from({ length: SECRET_DIGITS }, () => randomInt(62)),
  )
}
