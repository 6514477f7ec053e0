import { hash } from 'node:crypto'

/** How a secret is stored: hex SHA-256. Secrets are random, so no slow hash is needed. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret)
}
