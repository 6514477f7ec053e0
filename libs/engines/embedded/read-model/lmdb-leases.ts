import type { Claim, IndexInfo } from '#libs/ports/read-model/view-store.js'
import type { StoredKey } from './lmdb-keys.js'

/** The part of a group whose entries are all leased. */
interface Scanned {
  /** The last key of that part. */
  to: StoredKey
  /** When the first of these leases ends. */
  endsAtMs: number
}

/** The leases of entries in queues. Kept in memory, because one process uses the folder. */
export class LmdbLeases {
  /** When each lease ends, by queue and key, in the order of leasing. */
  private readonly untilMs = new Map<string, number>()
  /** By queue and group, so that a claim does not read all leased entries again. */
  private readonly scanned = new Map<string, Scanned>()

  isLeased(queue: IndexInfo, key: StoredKey, nowMs: number): boolean {
    return (this.untilMs.get(nameOf(queue, key)) ?? -Infinity) > nowMs
  }

  /** Leases keys of the group that are not leased. `keysFrom` reads the keys that are due, from a key on, in order. */
  claim(
    queue: IndexInfo,
    group: StoredKey,
    keysFrom: (key: StoredKey) => Iterable<StoredKey>,
    { nowMs, untilMs, limit }: Pick<Claim, 'nowMs' | 'untilMs' | 'limit'>,
  ): StoredKey[] {
    this.removeEnded(nowMs)
    const name = nameOf(queue, group)
    const known = this.scanned.get(name)
    const isKnown = known !== undefined && known.endsAtMs > nowMs
    let [to, endsAtMs] = isKnown ? [known.to, known.endsAtMs] : [group, Infinity]
    const claimed: StoredKey[] = []
    for (const key of keysFrom(to)) {
      if (claimed.length >= limit) break
      const lease = this.untilMs.get(nameOf(queue, key)) ?? -Infinity
      if (lease > nowMs) endsAtMs = Math.min(endsAtMs, lease)
      else {
        claimed.push(key)
        this.setLease(nameOf(queue, key), untilMs)
        endsAtMs = Math.min(endsAtMs, untilMs)
      }
      to = key
    }
    if (endsAtMs === Infinity) this.scanned.delete(name)
    else this.scanned.set(name, { to, endsAtMs })
    return claimed
  }

  release(queue: IndexInfo, key: StoredKey, untilMs: number): void {
    this.setLease(nameOf(queue, key), untilMs)
    this.scanned.delete(nameOf(queue, key.slice(0, 2)))
  }

  /** Ends the lease of an entry that is put again. */
  forget(queue: IndexInfo, key: StoredKey): void {
    this.untilMs.delete(nameOf(queue, key))
    this.scanned.delete(nameOf(queue, key.slice(0, 2)))
  }

  private setLease(name: string, untilMs: number): void {
    this.untilMs.delete(name)
    this.untilMs.set(name, untilMs)
  }

  /** Stops at the first lease that has not ended, because reading all of them takes long if there are many. */
  private removeEnded(nowMs: number): void {
    for (const [name, endsAtMs] of this.untilMs) {
      if (endsAtMs > nowMs) return
      this.untilMs.delete(name)
    }
  }
}

function nameOf({ name }: IndexInfo, key: StoredKey): string {
  return JSON.stringify([name, ...key])
}
