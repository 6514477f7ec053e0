import { isId, type Id } from '#libs/domain/ids/typeid.js'
import { NamedError, UnavailableError } from '#libs/runtime/errors.js'
import type { SecretKey } from './sealing.js'

/** A forgotten key stays forgotten. An unknown one may become known. */
export type KeyLookup = { state: 'known'; key: SecretKey } | { state: 'forgotten' } | { state: 'unknown' }

/** What has a key: an inbox for its mail, an account and a member for their personal data. */
export type KeyOwner = Id<(typeof PREFIXES)[number]>

const PREFIXES = ['inb', 'acc', 'mem'] as const

export function isKeyOwner(id: string): id is KeyOwner {
  return PREFIXES.some((prefix) => isId(prefix, id))
}

/** The key of each owner. Forgetting it erases everything that was sealed with it, wherever that is stored. */
export interface KeyVault {
  /**
   * Resolves with the owner's key once it is durable; with the existing one if there is one. Rejects with
   * KeyForgottenError if it was forgotten, and with KeyVaultUnavailableError if it can't be stored.
   */
  create(owner: KeyOwner): Promise<SecretKey>
  find(owner: KeyOwner): Promise<KeyLookup>
  /** Resolves once a permanent record has durably replaced each key. Repeats change nothing. */
  forget(owners: readonly KeyOwner[]): Promise<void>
  close(): Promise<void>
}

/** The vault is unavailable or full. A key may or may not be durable. */
export class KeyVaultUnavailableError extends UnavailableError {}

export class KeyForgottenError extends NamedError {
  constructor(owner: KeyOwner) {
    super(`the key of ${owner} has been forgotten`)
  }
}
