import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { LRUCache } from 'lru-cache'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { OffsetCursor } from '../http/list-pages.js'

/** A page of an inbox's messages as it is sent. */
export interface WrittenPage {
  /** A JSON array in UTF-8. */
  body: Buffer
  /** The position just past what the client has read. */
  cursor: OffsetCursor
  /** The position of the next page; null if there is none now. */
  next: OffsetCursor | null
}

/** Mail that this process has opened and may show again. It is only in memory. */
@Injectable()
export class OpenedMail implements OnApplicationShutdown {
  /** By the id of the message. */
  readonly messages: PlaintextMemory<OpenedMessage>
  /** By everything that determines a page. */
  readonly pages: PlaintextMemory<WrittenPage>
  /** The JSON of a message's event, written once for all streams. */
  readonly events: PlaintextMemory<string>

  constructor(mostBytes: number) {
    const quarter = Math.floor(mostBytes / 4)
    this.messages = new PlaintextMemory(2 * quarter)
    this.pages = new PlaintextMemory(quarter)
    this.events = new PlaintextMemory(quarter)
  }

  /** Must be called when an inbox, or a message of it, is found to be gone. */
  forget(inboxId: InboxId): void {
    for (const memory of [this.messages, this.pages, this.events]) memory.forget(inboxId)
  }

  onApplicationShutdown(): void {
    for (const memory of [this.messages, this.pages, this.events]) memory.close()
  }
}

/** The longest time that opened mail stays in memory. */
const KEPT_FOR_MS = 60_000
const SWEPT_EVERY_MS = 5_000

/**
 * The mail that was opened last, up to a number of bytes. Before it is read, the caller must have checked that the inbox
 * and the message still exist (docs/decisions/0015-opened-mail.md).
 */
export class PlaintextMemory<Value extends object | string> {
  private readonly values: LRUCache<string, { inboxId: InboxId; value: Value }> | null
  private readonly names = new Map<InboxId, Set<string>>()
  private readonly sweeping: NodeJS.Timeout

  /** With 0 bytes it keeps nothing. The clock counts milliseconds. */
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
    // Expired values are also removed if nobody asks for them.
    this.sweeping = setInterval(() => this.values?.purgeStale(), SWEPT_EVERY_MS).unref()
  }

  get(inboxId: InboxId, name: string): Value | null {
    return this.values?.get(`${inboxId} ${name}`)?.value ?? null
  }

  /** Does nothing if the name is kept already: its time is not extended. */
  keep(inboxId: InboxId, name: string, value: Value, bytes: number): void {
    const { values } = this
    const whole = `${inboxId} ${name}`
    if (values === null || values.has(whole)) return
    values.set(whole, { inboxId, value }, { size: whole.length + Math.max(bytes, 1) })
    if (!values.has(whole)) return
    const names = this.names.get(inboxId) ?? new Set()
    this.names.set(inboxId, names.add(whole))
  }

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
