import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { LRUCache } from 'lru-cache'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { MessageCursor } from '../http/list-pages.js'

/** A page of an inbox's messages as it is sent. */
export interface WrittenPage {
  /** A JSON array in UTF-8. */
  body: Buffer
  /** Where the client has read to: given back, it yields exactly what came after. */
  cursor: MessageCursor
  /** Where the list goes on; null if there is no more now. */
  next: MessageCursor | null
}

/** What this process has opened of inboxes and may show again, in memory alone. */
@Injectable()
export class OpenedMail implements OnApplicationShutdown {
  /** By the id of the message. */
  readonly messages: PlaintextMemory<OpenedMessage>
  /** By all that a page follows from. */
  readonly pages: PlaintextMemory<WrittenPage>
  /** The JSON of a message's event, written once for all streams. */
  readonly events: PlaintextMemory<string>

  constructor(mostBytes: number) {
    const quarter = Math.floor(mostBytes / 4)
    this.messages = new PlaintextMemory(2 * quarter)
    this.pages = new PlaintextMemory(quarter)
    this.events = new PlaintextMemory(quarter)
  }

  /** To be called where an inbox, or a message of it, is seen to be gone. */
  forget(inboxId: InboxId): void {
    this.messages.forget(inboxId)
    this.pages.forget(inboxId)
    this.events.forget(inboxId)
  }

  onApplicationShutdown(): void {
    this.messages.close()
    this.pages.close()
    this.events.close()
  }
}

/** How long what was opened stays in memory, whatever becomes of it. */
const KEPT_FOR_MS = 60_000
const SWEPT_EVERY_MS = 5_000

/**
 * What was opened last, so that it need not be opened again: so many bytes at most. It answers no question of its
 * own: whether the inbox and the message are still there has been asked before (docs/decisions/0015-opened-mail.md).
 */
export class PlaintextMemory<Value extends object | string> {
  private readonly values: LRUCache<string, { inboxId: InboxId; value: Value }> | null
  private readonly names = new Map<InboxId, Set<string>>()
  private readonly sweeping: NodeJS.Timeout

  /** 0 bytes remember nothing. The clock counts milliseconds. */
  constructor(mostBytes: number, clock: { now(): number } = performance) {
    this.values =
      mostBytes === 0
        ? null
        : new LRUCache({
            maxSize: mostBytes,
            ttl: KEPT_FOR_MS,
            ttlResolution: 0,
            perf: clock,
            dispose: ({ inboxId }, name) => this.forgetName(inboxId, name),
          })
    // What nobody asks for any more goes too.
    this.sweeping = setInterval(() => this.values?.purgeStale(), SWEPT_EVERY_MS).unref()
  }

  get(inboxId: InboxId, name: string): Value | null {
    return this.values?.get(`${inboxId} ${name}`)?.value ?? null
  }

  /** What has a place already keeps it, so that its time ends when it would have. */
  keep(inboxId: InboxId, name: string, value: Value, bytes: number): void {
    const { values } = this
    const whole = `${inboxId} ${name}`
    if (values === null || values.has(whole)) return
    values.set(whole, { inboxId, value }, { size: whole.length + Math.max(bytes, 1) })
    if (!values.has(whole)) return
    const names = this.names.get(inboxId) ?? new Set()
    this.names.set(inboxId, names.add(whole))
  }

  /** All that was opened of an inbox. */
  forget(inboxId: InboxId): void {
    for (const name of [...(this.names.get(inboxId) ?? [])]) this.values?.delete(name)
  }

  close(): void {
    clearInterval(this.sweeping)
    this.values?.clear()
  }

  private forgetName(inboxId: InboxId, name: string): void {
    const names = this.names.get(inboxId)
    names?.delete(name)
    if (names?.size === 0) this.names.delete(inboxId)
  }
}
