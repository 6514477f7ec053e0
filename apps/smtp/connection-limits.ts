import { LRUCache } from 'lru-cache'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { Release } from '#libs/runtime/fairness/budget.js'
import { SharedSlots } from '#libs/runtime/fairness/shared-slots.js'
import { addressGroup } from '#libs/runtime/remote-address.js'
import { REFUSALS, type Refusal } from './replies.js'

const MINUTE_MS = 60_000
/** How many remote addresses have their connections per minute counted. */
const MAX_COUNTED = 20_000

/**
 * Limits connections and their memory, in total and for each remote address. When a limit is reached, the address that
 * uses the most loses a connection, or an incomplete mail, to an address that uses less.
 */
export class ConnectionLimits {
  private readonly hosts = new Map<string, RemoteHost>()
  private readonly opened = new LRUCache<string, number>({
    max: MAX_COUNTED,
    ttl: MINUTE_MS,
    noUpdateTTL: true,
  })
  private readonly slots: SharedSlots
  /** The memory for all mail. */
  private readonly memory: FixedMemoryLimit

  constructor(private readonly settings: Settings) {
    this.slots = new SharedSlots(settings.smtpMaxConnections)
    this.memory = new FixedMemoryLimit(settings.smtpMemoryBytes)
  }

  get count(): number {
    return this.slots.taken
  }

  /** Whether so few slots are left that sessions without a mail get a shorter timeout. */
  get isCrowded(): boolean {
    return this.slots.taken * 5 > this.settings.smtpMaxConnections * 4
  }

  /**
   * Counts a connection for its remote address until `release` is called. Refuses it if the address has too many, has
   * opened too many within a minute, or all slots are taken. `giveUp` is called when another address needs the slot,
   * and returns whether the connection was closed.
   */
  admit(address: string, giveUp: () => boolean): { host: RemoteHost; release: () => void } | Refusal {
    const group = addressGroup(address)
    if (!this.mayOpen(group)) return REFUSALS.tooManyConnectionsPerMinute
    const host = this.hosts.get(group) ?? this.hostOf(group)
    if (host.connections >= this.settings.smtpMaxConnectionsPerAddress) return REFUSALS.tooManyConnections
    const releaseSlot = this.slots.take([group], giveUp)
    if (releaseSlot === null) return REFUSALS.tooManyConnections
    host.connections += 1
    this.hosts.set(group, host)
    const release = () => {
      releaseSlot()
      host.connections -= 1
      host.forgetIfIdle()
    }
    return { host, release }
  }

  /** Takes a slot for a connection whose remote address is not known yet. Null if all slots are taken. */
  hold(balancer: string, giveUp: () => boolean): Release | null {
    return this.slots.take([addressGroup(balancer)], giveUp)
  }

  private mayOpen(group: string): boolean {
    const { smtpMaxConnectionsPerMinute: max } = this.settings
    if (max === 0) return true
    const count = (this.opened.get(group) ?? 0) + 1
    this.opened.set(group, count)
    return count <= max
  }

  private hostOf(group: string): RemoteHost {
    const { smtpMemoryBytes, smtpMemoryPercentPerAddress, maxMessageBytes } = this.settings
    // Always enough for one mail of the maximum size while its buffer doubles.
    const maxBytes = Math.max((smtpMemoryBytes / 100) * smtpMemoryPercentPerAddress, 2 * maxMessageBytes)
    return new RemoteHost(group, maxBytes, this.memory, this.hosts)
  }
}

/** A limit of bytes in memory. */
export interface MemoryLimit {
  /** Takes bytes, to be released later. Returns false if too few are left. */
  tryTake(bytes: number): boolean
  release(bytes: number): void
}

export class FixedMemoryLimit implements MemoryLimit {
  private bytes = 0

  constructor(private readonly maxBytes: number) {}

  canTake(bytes: number): boolean {
    return this.bytes + bytes <= this.maxBytes
  }

  tryTake(bytes: number): boolean {
    if (!this.canTake(bytes)) return false
    this.bytes += bytes
    return true
  }

  release(bytes: number): void {
    this.bytes -= bytes
  }
}

/**
 * A remote address with its connections and memory. Its bytes also count towards the memory for all mail: when that is
 * full, incomplete mails of the address with the most bytes are dropped.
 */
export class RemoteHost implements MemoryLimit {
  connections = 0
  /** Incomplete mails, the oldest first, which can be dropped for another address. */
  readonly incoming = new Set<{ dropForMemory: () => void }>()
  private bytes = 0

  constructor(
    readonly group: string,
    private readonly maxBytes: number,
    private readonly memory: FixedMemoryLimit,
    private readonly hosts: Map<string, RemoteHost>,
  ) {}

  canTake(bytes: number): boolean {
    if (this.bytes + bytes > this.maxBytes) return false
    return this.memory.canTake(bytes) || this.largerThan(this.bytes + bytes) !== null
  }

  tryTake(bytes: number): boolean {
    if (this.bytes + bytes > this.maxBytes) return false
    while (!this.memory.tryTake(bytes)) {
      const larger = this.largerThan(this.bytes + bytes)
      const [oldest] = larger?.incoming ?? []
      if (larger === null || oldest === undefined) return false
      larger.incoming.delete(oldest)
      oldest.dropForMemory()
    }
    this.bytes += bytes
    return true
  }

  release(bytes: number): void {
    this.bytes -= bytes
    this.memory.release(bytes)
    this.forgetIfIdle()
  }

  /** Called for memory too, because a mail may release its memory after its connection has closed. */
  forgetIfIdle(): void {
    const isIdle = this.connections === 0 && this.bytes === 0
    if (isIdle && this.hosts.get(this.group) === this) this.hosts.delete(this.group)
  }

  /** The address with the most bytes, if it holds more than the given number. */
  private largerThan(bytes: number): RemoteHost | null {
    let [largest, max]: [RemoteHost | null, number] = [null, bytes]
    for (const host of this.hosts.values()) {
      if (host.bytes > max) [largest, max] = [host, host.bytes]
    }
    return largest
  }
}
