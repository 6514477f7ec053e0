import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { LRUCache } from 'lru-cache'
import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'

/** The maximum time that opened mail stays in memory. */
const MAX_AGE_MS = 60_000
const SWEEP_EVERY_MS = 5_000

/**
 * Caches mail that this process has opened, only in memory, by the ids of messages. It is limited in bytes; the least
 * recently used is evicted first. Before a caller reads from it, it must check that the inbox and the message still exist
 * (docs/decisions/0015-opened-mail.md).
 */
@Injectable()
export class OpenedMail implements OnApplicationShutdown {
  private readonly messages: LRUCache<MessageId, OpenedMessage> | null
  private readonly byInbox = new Map<InboxId, Set<MessageId>>()
  private readonly sweep: NodeJS.Timeout

  /** With 0 bytes it stores nothing. The clock is in milliseconds. */
  constructor(maxBytes: number, clock: { now(): number } = performance) {
    this.messages =
      maxBytes === 0
        ? null
        : new LRUCache({
            maxSize: maxBytes,
            ttl: MAX_AGE_MS,
            ttlResolution: 0,
            perf: clock,
            dispose: (message) => this.removeName(message),
          })
    // Removes expired mail also if it is not read.
    this.sweep = setInterval(() => this.messages?.purgeStale(), SWEEP_EVERY_MS).unref()
  }

  get(inboxId: InboxId, messageId: MessageId): OpenedMessage | null {
    const message = this.messages?.get(messageId)
    return message?.inboxId === inboxId ? message : null
  }

  /** `bytes` is what the message takes in memory. Does nothing if it is cached already: its time is not extended. */
  add(message: OpenedMessage, bytes: number): void {
    const { messages } = this
    const { id, inboxId } = message
    if (messages === null || messages.has(id)) return
    messages.set(id, message, { size: id.length + bytes })
    if (!messages.has(id)) return
    const names = this.byInbox.get(inboxId) ?? new Set()
    this.byInbox.set(inboxId, names.add(id))
  }

  /** Must be called when an inbox, or one of its messages, no longer exists. */
  forget(inboxId: InboxId): void {
    for (const id of [...(this.byInbox.get(inboxId) ?? [])]) this.messages?.delete(id)
  }

  onApplicationShutdown(): void {
    clearInterval(this.sweep)
    this.messages?.clear()
  }

  private removeName({ id, inboxId }: OpenedMessage): void {
    const names = this.byInbox.get(inboxId)
    names?.delete(id)
    if (names?.size === 0) this.byInbox.delete(inboxId)
  }
}
