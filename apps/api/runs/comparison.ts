import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { Manifest } from './manifest.js'
import type { MessageDifference, MessageKind } from './verify-schemas.js'

/*
 * Compares the mail of a load run with its manifest. See docs/load-testing.md for what each kind of difference means.
 */

/** A message of an inbox of the run. */
export interface RunMessage {
  id: MessageId
  inboxId: InboxId
  receivedAt: Date
  /** The mailbox of its inbox, as the manifest looks it up. */
  mailbox: string
  /** The address of RCPT TO. */
  recipient: string
  /** The value of the header that identifies it; null if it has no such header. */
  headerId: string | null
  /** The message that it repeats, because of a fault. */
  duplicateOf?: MessageId | undefined
  /** SHA-256 of its source, 32 bytes. */
  digest: () => Promise<Uint8Array>
}

export interface ComparisonOptions {
  /** Null if no message is late. */
  lateMs: number | null
  isOrdered: boolean
}

export type Counts = Record<MessageKind | 'expected' | 'found', number>

/** Messages must be added inbox by inbox, each inbox in the order of its mail. */
export class Comparison {
  readonly counts: Counts
  /** Of the duplicates, those that a fault made. */
  duplicatedByFaults = 0
  private inboxId: InboxId | null = null
  /** The last line in the manifest of this inbox's messages so far. */
  private lastLine = -1

  constructor(
    private readonly manifest: Manifest,
    private readonly options: ComparisonOptions,
  ) {
    const kinds = { duplicate: 0, unexpected: 0, late: 0, altered: 0, reordered: 0 }
    this.counts = { expected: manifest.size, found: 0, ...kinds }
  }

  /** The differences of a message. */
  async add(message: RunMessage): Promise<MessageDifference[]> {
    const { mailbox, headerId } = message
    const line = headerId === null ? undefined : this.manifest.take(mailbox, headerId)
    const found =
      line === undefined
        ? [differenceOf('unexpected', message)]
        : line === null
          ? [this.duplicate(message)]
          : await this.compare(message, line)
    for (const { kind } of found) this.counts[kind] += 1
    return found
  }

  private duplicate(message: RunMessage): MessageDifference {
    const { duplicateOf } = message
    const difference = differenceOf('duplicate', message)
    if (duplicateOf === undefined) return difference
    this.duplicatedByFaults += 1
    return { ...difference, duplicate_of: duplicateOf }
  }

  private async compare(message: RunMessage, line: number): Promise<MessageDifference[]> {
    const { lateMs, isOrdered } = this.options
    this.counts.found += 1
    const found: MessageDifference[] = []
    const difference = (kind: MessageKind, more: Partial<MessageDifference>) => {
      const { recipient } = this.manifest.read(line)
      found.push({ ...differenceOf(kind, message), recipient, line: line + 1, ...more })
    }

    const sentAtMs = this.manifest.sentAtMs(line)
    const delayMs = sentAtMs === null ? 0 : message.receivedAt.getTime() - sentAtMs
    if (lateMs !== null && sentAtMs !== null && delayMs > lateMs) {
      const sent_at = new Date(sentAtMs).toISOString()
      difference('late', { sent_at, delay_ms: delayMs, late_by_ms: delayMs - lateMs })
    }

    const expected = this.manifest.digestOf(line)
    const digest = expected === null ? null : await message.digest()
    if (expected !== null && digest !== null && Buffer.compare(expected, digest) !== 0) {
      difference('altered', { sha256: hexOf(expected), received_sha256: hexOf(digest) })
    }

    if (isOrdered) {
      if (message.inboxId !== this.inboxId) this.lastLine = -1
      this.inboxId = message.inboxId
      if (line < this.lastLine) difference('reordered', { after_line: this.lastLine + 1 })
      this.lastLine = Math.max(line, this.lastLine)
    }
    return found
  }
}

function differenceOf(kind: MessageKind, message: RunMessage): MessageDifference {
  const { recipient, headerId, id, inboxId, receivedAt } = message
  return {
    kind,
    recipient,
    id: headerId,
    message_id: id,
    inbox_id: inboxId,
    received_at: receivedAt.toISOString(),
  }
}

function hexOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString('hex')
}
