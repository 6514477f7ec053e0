import { UnavailableError } from '#libs/runtime/errors.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { SecretKey } from './seal.js'

/** "Forgotten" was known once and never opens anything again; "unknown" may yet come to be known. */
export type KeyLookup = { state: 'known'; key: SecretKey } | { state: 'forgotten' } | { state: 'unknown' }

/** Each inbox's own key. To forget the key is to erase what was sealed with it, wherever it stands. */
export interface KeyVault {
  /**
   * Resolves with the inbox's key once that is durable; the same one where the inbox has one already.
   * Rejects with KeyForgottenError if it was forgotten, with KeyVaultUnavailableError if it can't be kept.
   */
  create(inboxId: InboxId): Promise<SecretKey>
  find(inboxId: InboxId): Promise<KeyLookup>
  /** Resolves once a permanent record durably stands in place of each key. Repeats change nothing. */
  forget(inboxIds: readonly InboxId[]): Promise<void>
  close(): Promise<void>
}

/** A key is not, or not known to be, durable: the vault is out of reach or full. */
export class KeyVaultUnavailableError extends UnavailableError {
  override readonly name = 'KeyVaultUnavailableError'
}

export class KeyForgottenError extends Error {
  override readonly name = 'KeyForgottenError'

  constructor(inboxId: InboxId) {
    super(`the key of ${inboxId} has been forgotten`)
  }
}
