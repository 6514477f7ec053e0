import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { LRUCache } from 'lru-cache'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'

/** Caches mail that this process has opened, only in memory. */
@Injectable()
export class OpenedMail implements OnApplicationShutdown {
  /** By the id of the message. */
  readonly messages: PlaintextCache<OpenedMessage>
  /** The JSON of a message's event, written once for all streams. */
  readonly events: PlaintextCache<string>

  constructor(maxBytes: number) {
    const half = Math.floor(maxBytes / 2)
    this.messages = new PlaintextCache(half)
    this.events = new PlaintextCache(half)
  }

  /** Must be called when an inbox, or one of its messages, no longer exists. */
  forget(inboxId: InboxId): void {
    for (const cache of [this.messages, this.events]) cache.forget(inboxId)
  }

  onApplicationShutdown(): void {
    for (const cache of [this.messages, this.events]) cache.close()
  }
}

/** The maximum time that opened mail stays in memory. */
const MAX_AGE_MS = 60_000
const SWEEP_EVERY_MS = 5_000

/**
 * A cache of opened mail, limited in bytes; the least recently used is evicted first. Before a caller reads from it, it
 * must check that the inbox and the message still exist (docs/decisions/0015-opened-mail.md).
 */
export class PlaintextCache<Value extends object | string> {
  private readonly values: LRUCache<string, { inboxId: InboxId; value: Value }> | null
  private readonly names = new Map<InboxId, Set<string>>()
  private readonly sweep: NodeJS.Timeout

  /** With 0 bytes it stores nothing. The clock is in milliseconds. */
  constructor(maxBytes: number, clock: { now(): number } = performance) {
    this.values =
      maxBytes === 0
        ? null
        : new LRUCache({
            maxSize: maxBytes,
            ttl: MAX_AGE_MS,
            ttlResolution: 0,
            perf: clock,
            dispose: ({ inboxId }, name) => this.forgetName(inboxId, name),
          })
    // Removes expired values also if they are not read.
    this.sweep = setInterval(() => this.values?.purgeStale(), SWEEP_EVERY_MS).unref()
  }

  get(inboxId: InboxId, name: string): Value | null {
    return this.values?.get(`${inboxId} ${name}`)?.value ?? null
  }

  /** Does nothing if the name is cached already: its time is not extended. */
  set(inboxId: InboxId, name: string, value: Value, bytes: number): void {
    const { values } = this
    const key = `${inboxId} ${name}`
    if (values === null || values.has(key)) return
    values.set(key, { inboxId, value }, { size: key.length + Math.max(bytes, 1) })
    if (!values.has(key)) return
    const names = this.names.get(inboxId) ?? new Set()
    this.names.set(inboxId, names.add(key))
  }

  forget(inboxId: InboxId): void {
    for (const name of [...(this.names.get(inboxId) ?? [])]) this.values?.delete(name)
  }

  close(): void {
    clearInterval(this.sweep)
    this.values?.clear()
  }

  private forgetName(inboxId: InboxId, name: string): void {
    const names = this.names.get(inboxId)
    names?.delete(name)
    if (names?.size === 0) this.names.delete(inboxId)
  }
}
