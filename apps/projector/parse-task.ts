import type { InboxId, MessageId } from '#libs/typeid/typeid.js'

/** One mail for a parsing thread: sealed, with the key that opens it. */
export interface ParseTask {
  inboxId: InboxId
  messageId: MessageId
  key: Uint8Array
  sealed: Uint8Array
  /** Bytes of the source, which the sealed ones say little of. */
  size: number
}

/** The parsed mail, sealed with the same key. */
export interface ParseResult {
  messageId: MessageId
  body: Uint8Array
}

/** What a thread is to do with its mails: read them, or leave the parser out and say why. */
export interface ParseJob {
  tasks: ParseTask[]
  /** Set where the mail defeated the parser. */
  defeat: { code: 'parse-failed' | 'parse-timeout' | 'parse-out-of-memory'; detail: string } | null
}
