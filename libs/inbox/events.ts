import type { AccountId, InboxId, KeyId, MessageId } from '#libs/typeid/typeid.js'
import type { Address } from './address.js'

/** Everything that can happen to an inbox. What only its key may reveal is sealed (docs/events.md). */
export type InboxEvent = InboxCreated | MessageReceived | MessageDeleted | InboxExpired | InboxDeleted

export interface InboxCreated {
  type: 'InboxCreated'
  inboxId: InboxId
  accountId: AccountId
  environment: string
  keyId: KeyId
  address: Address
  duration: string
  labels: Readonly<Record<string, string>>
  maxMessages: number
  /** Whether its mail is kept behind a password. */
  isProtected: boolean
  createdAt: Date
  expiresAt: Date
  /** Sealed InboxDetails. */
  sealed: Uint8Array
}

export interface MessageReceived {
  type: 'MessageReceived'
  inboxId: InboxId
  messageId: MessageId
  receivedAt: Date
  /** Bytes of the mail's source. */
  size: number
  /** Hex SHA-256 of the sealed bytes. */
  digest: string
  /** Envelope and source, sealed. */
  sealed: Uint8Array
  /** What usage figures know the inbox by; null in records from before there were any. */
  inbox: { keyId: KeyId; labels: Readonly<Record<string, string>> } | null
}

export interface MessageDeleted {
  type: 'MessageDeleted'
  inboxId: InboxId
  messageId: MessageId
  keyId: KeyId
  deletedAt: Date
}

export interface InboxExpired {
  type: 'InboxExpired'
  inboxId: InboxId
  expiredAt: Date
}

export interface InboxDeleted {
  type: 'InboxDeleted'
  inboxId: InboxId
  keyId: KeyId
  deletedAt: Date
}

/** What of an inbox is sealed with its key, beside the mail. */
export interface InboxDetails {
  name: string | null
  /** Hex SHA-256 of the password of a protected inbox. */
  passwordDigest?: string
}
