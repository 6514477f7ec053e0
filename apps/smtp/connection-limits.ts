import { LRUCache } from 'lru-cache'
import { SharedSlots, type Leave } from '#libs/runtime/fair-share.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { addressGroup } from '#libs/runtime/remote-address.js'
import { type Refusal, REFUSALS } from './replies.js'

const MINUTE_MS = 60_000
/** Remote addresses whose connections are counted; one that is forgotten begins anew. */
const MAX_COUNTED = 20_000

/**
 * Counts connections and the memory behind them, in all and for each remote address. When all are taken, the address with
 * the most gives up a connection, or a mail that has not come whole yet, to an address with fewer.
 */
export class ConnectionLimits {
  private readonly hosts = new Map<string, RemoteHost>()
  private readonly begun = new LRUCache<string, { count: number }>({ max: MAX_COUNTED, ttl: MINUTE_MS })
  private readonly slots: SharedSlots
  /** Of all mail. */
  private readonly memory: MemoryBudget

  constructor(private readonly settings: Settings) {
    this.slots = new SharedSlots(settings.smtpMaxConnections)
    this.memory = new MemoryBudget(settings.smtpMemoryBytes)
  }

  get count(): number {
    return this.slots.taken
  }

  /** Whether so few slots are left that a session without a mail must hurry. */
  get isCrowded(): boolean {
    return this.slots.taken * 5 > this.settings.smtpMaxConnections * 4
  }

  /**
   * Counts a connection for its remote address until `leave` is called, unless the address has too many, or began too many,
   * or all are taken. `giveUp` is called when another address wants the slot: it returns whether the connection is closed.
   */
  admit(address: string, giveUp: () => boolean): { host: RemoteHost; leave: () => void } | Refusal {
    const group = addressGroup(address)
    if (!this.mayBegin(group)) return REFUSALS.tooManyConnectionsPerMinute
    const host = this.hosts.get(group) ?? this.hostOf(group)
    if (host.connections >= this.settings.smtpMaxConnectionsPerAddress) return REFUSALS.tooManyConnections
    const leaveSlot = this.slots.take([group], giveUp)
    if (leaveSlot === null) return REFUSALS.tooManyConnections
    host.connections += 1
    this.hosts.set(group, host)
    const leave = () => {
      leaveSlot()
      host.connections -= 1
      host.forgetIfIdle()
    }
    return { host, leave }
  }

  /** Takes a slot for a connection whose remote address is not known yet. Null if all are taken. */
  hold(balancer: string, giveUp: () => boolean): Leave | null {
    return this.slots.take([addressGroup(balancer)], giveUp)
  }

  private mayBegin(group: string): boolean {
    const { smtpMaxConnectionsPerMinute: max } = this.settings
    if (max === 0) return true
    const begun = this.begun.get(group) ?? { count: 0 }
    if (begun.count === 0) this.begun.set(group, begun)
    begun.count += 1
    return begun.count <= max
  }

  private hostOf(group: string): RemoteHost {
    const { smtpMemoryBytes, smtpMemoryPercentPerAddress, maxMessageBytes } = this.settings
    // At least a mail of the largest size, while its buffer doubles, whatever the percentage says.
    const maxBytes = Math.max((smtpMemoryBytes / 100) * smtpMemoryPercentPerAddress, 2 * maxMessageBytes)
    return new RemoteHost(group, maxBytes, this.memory, this.hosts)
  }
}

/** Where bytes are taken from and given back to. */
export interface Budget {
  /** Whether the bytes were taken; who took them gives them back. */
  tryTake(bytes: number): boolean
  giveBack(bytes: number): void
}

/** Counts bytes held at once against a limit. */
export class MemoryBudget implements Budget {
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

  giveBack(bytes: number): void {
    this.bytes -= bytes
  }
}

/**
 * A remote address and what it holds at the moment. Bytes that it takes count for all mail too: when those are used up,
 * the address with the most gives bytes back to one that holds fewer.
 */
export class RemoteHost implements Budget {
  connections = 0
  /** Mails that have not come whole yet, the oldest first: they can be dropped for another address. */
  readonly incoming = new Set<{ dropForMemory: () => void }>()
  private bytes = 0

  constructor(
    readonly group: string,
    private readonly maxBytes: number,
    private readonly memory: MemoryBudget,
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

  giveBack(bytes: number): void {
    this.bytes -= bytes
    this.memory.giveBack(bytes)
    this.forgetIfIdle()
  }

  /** A mail may give its memory back after its connection has closed. */
  forgetIfIdle(): void {
    const isIdle = this.connections === 0 && this.bytes === 0
    if (isIdle && this.hosts.get(this.group) === this) this.hosts.delete(this.group)
  }

  /** The address with the most bytes, if it holds more than that. */
  private largerThan(bytes: number): RemoteHost | null {
    let [found, most]: [RemoteHost | null, number] = [null, bytes]
    for (const host of this.hosts.values()) {
      if (host.bytes > most) [found, most] = [host, host.bytes]
    }
    return found
  }
}
