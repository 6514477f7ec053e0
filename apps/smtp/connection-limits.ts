import { LRUCache } from 'lru-cache'
import { SharedSlots, type Leave } from '#libs/runtime/fair-share/shared-slots.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { addressGroup } from '#libs/runtime/remote-address.js'

export type ConnectionLimitsSettings = Pick<
  Settings,
  | 'smtpMaxConnections'
  | 'smtpMaxConnectionsPerAddress'
  | 'smtpMaxConnectionsPerMinute'
  | 'smtpMemoryBytes'
  | 'smtpMemoryPercentPerAddress'
  | 'maxMessageBytes'
>

/** A remote address and what it holds at the moment. */
export interface RemoteHost extends Sharer {
  readonly group: string
  connections: number
}

export interface Admitted {
  host: RemoteHost
  /** To be called once the connection is gone. */
  leave: Leave
}

export type Denial = 'too-many' | 'too-often'

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

  constructor(private readonly settings: ConnectionLimitsSettings) {
    this.slots = new SharedSlots(settings.smtpMaxConnections)
    this.memory = new MemoryBudget(settings.smtpMemoryBytes)
  }

  get count(): number {
    return this.slots.taken
  }

  /** Whether few slots are left, so that who has not shown yet that he delivers must hurry. */
  get isCrowded(): boolean {
    return this.slots.taken * 5 > this.settings.smtpMaxConnections * 4
  }

  /**
   * Counts a connection for its remote address until it leaves, unless that has too many, or began too many, or all are
   * taken. `giveUp` is called when another address wants its slot: it returns whether the connection is closed.
   */
  admit(address: string, giveUp: () => boolean): Admitted | Denial {
    const group = addressGroup(address)
    if (!this.mayBegin(group)) return 'too-often'
    const host = this.hosts.get(group) ?? this.hostOf(group)
    if (host.connections >= this.settings.smtpMaxConnectionsPerAddress) return 'too-many'
    const leave = this.slots.take([group], giveUp)
    if (leave === null) return 'too-many'
    host.connections += 1
    this.hosts.set(group, host)
    let hasLeft = false
    return {
      host,
      leave: () => {
        if (!hasLeft) this.leave(host, leave)
        hasLeft = true
      },
    }
  }

  /** Takes a slot for a connection whose remote address is not known yet. Null if all are taken. */
  hold(balancer: string, giveUp: () => boolean): Leave | null {
    return this.slots.take([addressGroup(balancer)], giveUp)
  }

  /** To be called when a connection that has left gave its memory back. */
  forgetIdle(host: RemoteHost): void {
    if (host.connections === 0 && host.memory.bytes === 0) this.hosts.delete(host.group)
  }

  private leave(host: RemoteHost, leavePlace: Leave): void {
    leavePlace()
    host.connections -= 1
    this.forgetIdle(host)
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
    const bytes = Math.max((smtpMemoryBytes / 100) * smtpMemoryPercentPerAddress, 2 * maxMessageBytes)
    const memory = new BudgetShare(bytes, this.memory, () => this.hosts.values())
    return { group, memory, incoming: new Set(), connections: 0 }
  }
}

/** Counts bytes held at once against a limit. */
export class MemoryBudget {
  private held = 0

  constructor(private readonly limit: number) {}

  hasRoomFor(bytes: number): boolean {
    return this.held + bytes <= this.limit
  }

  /** Whether the bytes were taken; who took them gives them back. */
  tryTake(bytes: number): boolean {
    if (!this.hasRoomFor(bytes)) return false
    this.held += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.held -= bytes
  }
}

/** Where bytes are taken from and given back to. */
export type Budget = Pick<MemoryBudget, 'tryTake' | 'giveBack'>

/** One of those who share a budget. */
export interface Sharer {
  memory: BudgetShare
  /** What may be asked to give its bytes back, in this order. */
  incoming: Set<{ dropForMemory: () => void }>
}

/**
 * The part of a budget that one sharer may take: what is taken here counts in both. When the whole is full, the sharer
 * with the most gives bytes back to one that holds fewer.
 */
export class BudgetShare {
  private held = 0

  constructor(
    private readonly limit: number,
    private readonly whole: MemoryBudget,
    private readonly sharers: () => Iterable<Sharer>,
  ) {}

  get bytes(): number {
    return this.held
  }

  hasRoomFor(bytes: number): boolean {
    if (this.held + bytes > this.limit) return false
    return this.whole.hasRoomFor(bytes) || this.largerThan(this.held + bytes) !== null
  }

  /** Whether the bytes were taken; who took them gives them back. */
  tryTake(bytes: number): boolean {
    if (this.held + bytes > this.limit) return false
    while (!this.whole.tryTake(bytes)) {
      const larger = this.largerThan(this.held + bytes)
      const [oldest] = larger?.incoming ?? []
      if (larger === null || oldest === undefined) return false
      larger.incoming.delete(oldest)
      oldest.dropForMemory()
    }
    this.held += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.held -= bytes
    this.whole.giveBack(bytes)
  }

  /** The sharer with the most, if it holds more than that. */
  private largerThan(bytes: number): Sharer | null {
    let [found, most]: [Sharer | null, number] = [null, bytes]
    for (const sharer of this.sharers()) {
      if (sharer.memory.bytes > most) [found, most] = [sharer, sharer.memory.bytes]
    }
    return found
  }
}
