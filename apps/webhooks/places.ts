import type { WebhookId } from '#libs/typeid/typeid.js'

/** Whoever takes longer has a place that hundreds of quick attempts could have had. */
const SLOW_MS = 1_000
/** Of all places: those that slow webhooks may have together, and those that they and new ones may. */
const SHARES = { slow: 1 / 2, new: 3 / 4 }
/** Of all places: those that are for webhooks with no attempt under way. */
const KEPT = 1 / 4
/** Webhooks remembered; beyond it the oldest are as new. */
const MOST_KNOWN = 50_000

/**
 * The places for attempts under way, shared so that endpoints that take long leave some to those that don't, however
 * many they are. A webhook has one place at first. Each quick attempt gives it another one, each slow attempt takes
 * half of them. Those with one have but a part of all places between them, of which slow ones leave some to new ones;
 * some are for those alone that have none. In this process's memory alone: each learns by itself.
 */
export class Places {
  private readonly taken = new Map<WebhookId, number>()
  private readonly earned = new Map<WebhookId, number>()
  private countTaken = 0

  /** `most`: in all, and of one webhook. */
  constructor(
    private readonly most: number,
    private readonly mostOfOne: number,
  ) {}

  get free(): number {
    return this.most - this.countTaken
  }

  /** What may be claimed at once: so many in all, and of each webhook, where it may have `mostNow` under way. */
  offer(): { limit: number; room: (id: WebhookId, mostNow: number) => number } {
    const { free } = this
    const kept = Math.floor(this.most * KEPT)
    const isPlenty = free > kept
    let countUnproven = 0
    for (const [id, count] of this.taken) if (!this.isProven(id)) countUnproven += count
    const offered = new Set<WebhookId>()
    const room = (id: WebhookId, mostNow: number) => {
      const own = this.taken.get(id) ?? 0
      const more = Math.min(isPlenty ? this.earnedBy(id) : 1, mostNow) - own
      if (more <= 0) return 0
      if (this.isProven(id) || offered.has(id)) return more
      if (countUnproven >= this.shareOf(id)) return 0
      countUnproven += 1
      offered.add(id)
      return more
    }
    return { limit: isPlenty ? free - kept : free, room }
  }

  take(id: WebhookId): void {
    this.countTaken += 1
    this.taken.set(id, (this.taken.get(id) ?? 0) + 1)
  }

  leave(id: WebhookId): void {
    this.countTaken -= 1
    const left = (this.taken.get(id) ?? 1) - 1
    if (left > 0) this.taken.set(id, left)
    else this.taken.delete(id)
  }

  /** `tookMs`: for how long the endpoint was waited for. */
  learn(id: WebhookId, tookMs: number): void {
    const earned = this.earnedBy(id)
    this.earned.delete(id)
    // Where one place is all that may be had, a second one says that it is quick.
    const most = Math.max(this.mostOfOne, 2)
    this.earned.set(id, tookMs > SLOW_MS ? Math.max(Math.floor(earned / 2), 1) : Math.min(earned + 1, most))
    for (const oldest of this.earned.keys()) {
      if (this.earned.size <= MOST_KNOWN) break
      this.earned.delete(oldest)
    }
  }

  private isProven(id: WebhookId): boolean {
    return this.earnedBy(id) > 1
  }

  private earnedBy(id: WebhookId): number {
    return this.earned.get(id) ?? 1
  }

  private shareOf(id: WebhookId): number {
    return Math.ceil(this.most * (this.earned.has(id) ? SHARES.slow : SHARES.new))
  }
}
