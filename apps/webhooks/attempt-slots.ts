import { largeCache } from '#libs/runtime/large-cache.js'
import type { AccountId, WebhookId } from '#libs/domain/ids/typeid.js'

/** An attempt that takes longer counts as slow: its slot could have served hundreds of quick attempts. */
const SLOW_MS = 1_000
/** The shares of all slots for the slow webhooks of one account, and for the new and slow webhooks of all accounts. */
const SHARES = { slow: 3 / 8, unproven: 3 / 4 }
/** The shares of all slots reserved for webhooks without an attempt in progress, and for accounts without one. */
const RESERVED = { webhooks: 1 / 4, accounts: 1 / 16 }
/** The new and slow webhooks of one account hold at most this many times the slots left for such webhooks. */
const MAX_TIMES_LEFT = 3
/** How many webhooks are remembered. */
const MAX_KNOWN = 50_000

/** A webhook and the account that its slots count towards. */
export interface OwnedWebhook {
  id: WebhookId
  accountId: AccountId
}

interface Held {
  slots: number
  /** The slots of new and slow webhooks. */
  unproven: number
}

/**
 * The slots for attempts in progress, shared so that slow endpoints can't use the slots of quick ones. A webhook starts
 * with one slot. Each quick attempt adds one, and each slow attempt halves them. New and slow webhooks, those with one
 * slot, share a part of all slots: an account leaves some of that part to other accounts, and its slow webhooks leave
 * some to its new ones. Some slots are reserved for webhooks that hold none, and some for accounts that hold none. Each
 * process keeps its own counts, in memory.
 */
export class AttemptSlots {
  private readonly taken = new Map<WebhookId, { accountId: AccountId; slots: number }>()
  private readonly earned = largeCache<WebhookId, number>(MAX_KNOWN)
  private countTaken = 0

  constructor(
    private readonly max: number,
    private readonly maxPerWebhook: number,
  ) {}

  get free(): number {
    return this.max - this.countTaken
  }

  /**
   * The slots for one claim: at most `limit` in all, and `capacityOf` each webhook, whose limit is `maxNow` at the
   * moment. A second call for the same webhook returns 0, because a store that reads due deliveries in pages may meet a
   * webhook twice.
   */
  offer(): { limit: number; capacityOf: (webhook: OwnedWebhook, maxNow: number) => number } {
    const reserved = Math.floor(this.max * RESERVED.webhooks)
    const reservedForAccounts = Math.floor(this.max * RESERVED.accounts)
    const hasUnreserved = this.free > reserved
    const maxUnproven = Math.ceil(this.max * SHARES.unproven)
    const maxSlow = Math.ceil(this.max * SHARES.slow)
    const all = noSlots()
    const accounts = new Map<AccountId, Held>()
    const count = ({ id, accountId }: OwnedWebhook, slots: number) => {
      const own = accounts.get(accountId) ?? noSlots()
      accounts.set(accountId, own)
      for (const held of [all, own]) {
        held.slots += slots
        if (!this.isProven(id)) held.unproven += slots
      }
    }
    for (const [id, { accountId, slots }] of this.taken) count({ id, accountId }, slots)
    const offered = new Set<WebhookId>()
    const capacityOf = (webhook: OwnedWebhook, maxNow: number) => {
      const { id, accountId } = webhook
      const more = Math.min(hasUnreserved ? this.earnedBy(id) : 1, maxNow) - (this.taken.get(id)?.slots ?? 0)
      if (more <= 0 || offered.has(id)) return 0
      const own = accounts.get(accountId) ?? noSlots()
      const isUnproven = !this.isProven(id)
      if (all.slots >= this.max - (own.slots > 0 ? reservedForAccounts : 0)) return 0
      const left = maxUnproven - (own.unproven > 0 ? reservedForAccounts : 0) - all.unproven
      if (isUnproven && own.unproven >= MAX_TIMES_LEFT * left) return 0
      if (isUnproven && this.earned.has(id) && own.unproven >= maxSlow) return 0
      count(webhook, 1)
      offered.add(id)
      return more
    }
    return { limit: hasUnreserved ? this.free - reserved : this.free, capacityOf }
  }

  /** Takes a slot. Returns a function that releases it and can be called more than once. */
  take({ id, accountId }: OwnedWebhook): () => void {
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

  /** Adjusts a webhook's slots to the time that its endpoint took for an attempt. */
  recordDuration(id: WebhookId, tookMs: number): void {
    const earned = this.earnedBy(id)
    // At least 2, which marks a webhook as quick even if it may use only one slot.
    const max = Math.max(this.maxPerWebhook, 2)
    this.earned.set(id, tookMs > SLOW_MS ? Math.max(Math.floor(earned / 2), 1) : Math.min(earned + 1, max))
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
