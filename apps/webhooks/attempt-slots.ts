import { LRUCache } from 'lru-cache'
import type { AccountId, WebhookId } from '#libs/domain/ids/typeid.js'

/** An attempt that takes longer holds a slot that hundreds of quick attempts could have had. */
const SLOW_MS = 1_000
/** Of all slots: those that an account's slow webhooks may have together, and those that all new and slow ones may. */
const SHARES = { slow: 3 / 8, unproven: 3 / 4 }
/** Of all slots: those that are for webhooks with no attempt under way, and of these, for accounts with none. */
const KEPT = { webhooks: 1 / 4, accounts: 1 / 16 }
/** An account's new and slow webhooks have at most this many times the slots that are left for such webhooks. */
const MAX_TIMES_LEFT = 3
/** Webhooks remembered. */
const MAX_KNOWN = 50_000

/** A webhook, and the account that its slots count for. */
export interface Owned {
  id: WebhookId
  accountId: AccountId
}

interface Held {
  slots: number
  /** Those of new and slow webhooks. */
  unproven: number
}

/**
 * The slots for attempts under way, shared so that slow endpoints leave some to quick ones, however many they are and
 * whoever owns them. A webhook has one slot at first. Each quick attempt gives it another one, each slow attempt takes
 * half of them. Webhooks with one slot, the new and the slow ones, have only a part of all slots together; an account
 * leaves some of that part to other accounts, and its slow webhooks leave some to its new ones. Some slots are reserved
 * for webhooks that have none, and some for accounts that have none. Each process learns by itself, in memory.
 */
export class AttemptSlots {
  private readonly taken = new Map<WebhookId, { accountId: AccountId; slots: number }>()
  private readonly earned = new LRUCache<WebhookId, number>({ max: MAX_KNOWN })
  private countTaken = 0

  /** `most`: in all, and of one webhook. */
  constructor(
    private readonly most: number,
    private readonly mostOfOne: number,
  ) {}

  get free(): number {
    return this.most - this.countTaken
  }

  /**
   * What may be claimed at once: so many in all, and of each webhook, if it may have `mostNow` under way. A webhook that
   * is asked for again is given nothing: a store that reads what is due in pages may meet it twice.
   */
  offer(): { limit: number; capacityOf: (webhook: Owned, mostNow: number) => number } {
    const kept = Math.floor(this.most * KEPT.webhooks)
    const keptForAccounts = Math.floor(this.most * KEPT.accounts)
    const isPlenty = this.free > kept
    const mostUnproven = Math.ceil(this.most * SHARES.unproven)
    const mostSlow = Math.ceil(this.most * SHARES.slow)
    const all = noSlots()
    const accounts = new Map<AccountId, Held>()
    const count = ({ id, accountId }: Owned, slots: number) => {
      const own = accounts.get(accountId) ?? noSlots()
      accounts.set(accountId, own)
      for (const held of [all, own]) {
        held.slots += slots
        if (!this.isProven(id)) held.unproven += slots
      }
    }
    for (const [id, { accountId, slots }] of this.taken) count({ id, accountId }, slots)
    const offered = new Set<WebhookId>()
    const capacityOf = (webhook: Owned, mostNow: number) => {
      const { id, accountId } = webhook
      const more = Math.min(isPlenty ? this.earnedBy(id) : 1, mostNow) - (this.taken.get(id)?.slots ?? 0)
      if (more <= 0 || offered.has(id)) return 0
      const own = accounts.get(accountId) ?? noSlots()
      const isUnproven = !this.isProven(id)
      if (all.slots >= this.most - (own.slots > 0 ? keptForAccounts : 0)) return 0
      const left = mostUnproven - (own.unproven > 0 ? keptForAccounts : 0) - all.unproven
      if (isUnproven && own.unproven >= MAX_TIMES_LEFT * left) return 0
      if (isUnproven && this.earned.has(id) && own.unproven >= mostSlow) return 0
      count(webhook, 1)
      offered.add(id)
      return more
    }
    return { limit: isPlenty ? this.free - kept : this.free, capacityOf }
  }

  /** Returns what gives the slot back; harmless to repeat. */
  take({ id, accountId }: Owned): () => void {
    this.countTaken += 1
    const taken = this.taken.get(id) ?? { accountId, slots: 0 }
    this.taken.set(id, taken)
    taken.slots += 1
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.countTaken -= 1
      taken.slots -= 1
      if (taken.slots === 0) this.taken.delete(id)
    }
  }

  /** `tookMs`: for how long the endpoint was waited for. */
  learn(id: WebhookId, tookMs: number): void {
    const earned = this.earnedBy(id)
    // Where one slot is all that may be had, a second one says that it is quick.
    const most = Math.max(this.mostOfOne, 2)
    this.earned.set(id, tookMs > SLOW_MS ? Math.max(Math.floor(earned / 2), 1) : Math.min(earned + 1, most))
  }

  private isProven(id: WebhookId): boolean {
    return this.earnedBy(id) > 1
  }

  private earnedBy(id: WebhookId): number {
    return this.earned.get(id) ?? 1
  }
}

function noSlots(): Held {
  return { slots: 0, unproven: 0 }
}

/** Failures in a row that open a circuit. */
const OPENS_AFTER = 5
const PAUSE_MS = { first: 5_000, most: 300_000 }
/** Endpoints remembered. */
const MAX_CIRCUITS = 50_000

interface Circuit {
  failures: number
  openUntilMs: number
  pauseMs: number
}

/**
 * Endpoints that fail again and again are tried one attempt at a time, ever less often, so that what is due to a dead
 * one takes no slots from others. In this process's memory alone: each learns by itself.
 */
export class Circuits {
  private readonly circuits = new LRUCache<WebhookId, Circuit>({ max: MAX_CIRCUITS })

  /** How many attempts may be under way: `most` where all is well. */
  capacityOf(id: WebhookId, most: number, nowMs: number): number {
    const circuit = this.circuits.get(id)
    if (circuit === undefined || circuit.failures < OPENS_AFTER) return most
    return nowMs < circuit.openUntilMs ? 0 : 1
  }

  succeeded(id: WebhookId): void {
    this.circuits.delete(id)
  }

  failed(id: WebhookId, nowMs: number): void {
    const circuit = this.circuits.get(id) ?? { failures: 0, openUntilMs: 0, pauseMs: PAUSE_MS.first }
    // What was under way when it opened says nothing new.
    if (nowMs < circuit.openUntilMs) return
    const { failures, pauseMs } = circuit
    const isOpen = failures + 1 >= OPENS_AFTER
    this.circuits.set(id, {
      failures: failures + 1,
      openUntilMs: isOpen ? nowMs + pauseMs : 0,
      pauseMs: isOpen ? Math.min(pauseMs * 2, PAUSE_MS.most) : pauseMs,
    })
  }
}
