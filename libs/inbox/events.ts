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
  /** Null in events recorded before usage was counted. */
  inbox: InboxAttribution | null
}

/** The key that created the inbox, and the inbox's labels: what usage figures count an event by. */
export interface InboxAttribution {
  keyId: KeyId
  labels: Readonly<Record<string, string>>
}

export interface MessageDeleted {
  type: 'MessageDeleted'
  inboxId: InboxId
  messageId: MessageId
  /** The key that deleted the message. */
  keyId: KeyId
  deletedAt: Date
  /** Null in events recorded before usage was counted. */
  inbox: InboxAttribution | null
}

export interface InboxExpired {
  type: 'InboxExpired'
  inboxId: InboxId
  expiredAt: Date
  /** Null in events recorded before usage was counted. */
  inbox: InboxAttribution | null
}

export interface InboxDeleted {
  type: 'InboxDeleted'
  inboxId: InboxId
  /** The key that deleted the inbox. */
  keyId: KeyId
  deletedAt: Date
  /** Null in events recorded before usage was counted. */
  inbox: InboxAttribution | null
}

/** What of an inbox is sealed with its key, beside the mail. */
export interface InboxDetails {
  name: string | null
  /** Hex SHA-256 of the password of a protected inbox. */
  passwordDigest?: string
}
