import type { InboxId } from '#libs/domain/ids/typeid.js'
import { NamedError, UnavailableError } from '#libs/runtime/errors.js'
import type { SecretKey } from './sealing.js'

/** A forgotten key stays forgotten. An unknown one may become known. */
export type KeyLookup = { state: 'known'; key: SecretKey } | { state: 'forgotten' } | { state: 'unknown' }

/** The key of each inbox. Forgetting it erases everything that was sealed with it, wherever that is stored. */
export interface KeyVault {
  /**
   * Resolves with the inbox's key once it is durable; with the existing one if there is one. Rejects with
   * KeyForgottenError if it was forgotten, and with KeyVaultUnavailableError if it can't be stored.
   */
  create(inboxId: InboxId): Promise<SecretKey>
  find(inboxId: InboxId): Promise<KeyLookup>
  /** Resolves once a permanent record has durably replaced each key. Repeats change nothing. */
  forget(inboxIds: readonly InboxId[]): Promise<void>
  close(): Promise<void>
}

/** The vault is unavailable or full. A key may or may not be durable. */
export class KeyVaultUnavailableError extends UnavailableError {}

export class KeyForgottenError extends NamedError {
  constructor(inboxId: InboxId) {
    super(`the key of ${inboxId} has been forgotten`)
  }
}
