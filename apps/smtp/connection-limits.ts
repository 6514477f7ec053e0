import { LRUCache } from 'lru-cache'
import { BudgetShare, type MemoryBudget } from './memory-budget.js'
import { addressGroup } from '#libs/remote-address/remote-address.js'

export interface ConnectionLimitsOptions {
  /** Connections open at once, in all and from one remote address. */
  most: number
  mostPerAddress: number
  /** Connections begun within a minute from one remote address; 0 for any number. */
  mostPerMinute: number
  /** Of all mail, and the bytes that one remote address may hold of it. */
  memory: MemoryBudget
  mostBytesPerAddress: number
}

/** A remote address and what it holds at the moment. */
export interface RemoteHost {
  readonly group: string
  readonly memory: BudgetShare
  connections: number
}

export type Denial = 'too-many' | 'too-often'

const MINUTE_MS = 60_000
/** Remote addresses whose connections are counted; one that is forgotten begins anew. */
const MOST_COUNTED = 20_000

/** Counts connections and the memory behind them, in all and for each remote address. */
export class ConnectionLimits {
  private readonly hosts = new Map<string, RemoteHost>()
  private readonly begun = new LRUCache<string, { count: number }>({ max: MOST_COUNTED, ttl: MINUTE_MS })
  private open = 0

  constructor(private readonly options: ConnectionLimitsOptions) {}

  get count(): number {
    return this.open
  }

  /** Whether few places are left, so that who has not shown yet that he delivers must hurry. */
  get isCrowded(): boolean {
    return this.open * 5 > this.options.most * 4
  }

  /** Whether one more may be open; it then counts until `close`. */
  tryOpen(): boolean {
    if (this.open >= this.options.most) return false
    this.open += 1
    return true
  }

  close(): void {
    this.open -= 1
  }

  /** Counts a connection for its remote address until `leave`, unless that has too many, or began too many. */
  admit(address: string): RemoteHost | Denial {
    const group = addressGroup(address)
    if (this.options.mostPerMinute > 0 && !this.mayBegin(group)) return 'too-often'
    const host = this.hosts.get(group) ?? this.hostOf(group)
    if (host.connections >= this.options.mostPerAddress) return 'too-many'
    host.connections += 1
    this.hosts.set(group, host)
    return host
  }

  leave(host: RemoteHost): void {
    host.connections -= 1
    this.forgetIdle(host)
  }

  /** To be told when a connection that has left gave its memory back. */
  forgetIdle(host: RemoteHost): void {
    if (host.connections === 0 && host.memory.isEmpty) this.hosts.delete(host.group)
  }

  private mayBegin(group: string): boolean {
    const begun = this.begun.get(group) ?? { count: 0 }
    if (begun.count === 0) this.begun.set(group, begun)
    begun.count += 1
    return begun.count <= this.options.mostPerMinute
  }

  private hostOf(group: string): RemoteHost {
    const { memory, mostBytesPerAddress } = this.options
    return { group, memory: new BudgetShare(mostBytesPerAddress, memory), connections: 0 }
  }
}
