import { Resolver } from 'node:dns/promises'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'

/*
 * Relies on Node's resolver (c-ares): time and tries for each query, any port, errors by code, and that it keeps
 * nothing itself. It reads no hosts file.
 */

const QUERY_MS = { timeout: 1_500, tries: 2, maxTimeout: 3_000 }
const MAX_QUERIES_AT_ONCE = 1_000
const KEPT_MS = 60_000
const FAILURE_KEPT_MS = 5_000
const KEPT_BYTES = 16 * 1024 * 1024
const LONGEST_NAME = 253

export type DnsRecords = Awaited<ReturnType<Resolver['resolve']>>
/** What there is, or the code of c-ares for why there is nothing (`ENOTFOUND`, `ENODATA`, `ETIMEOUT` …). */
export type DnsAnswer = { records: DnsRecords } | { code: string }

/**
 * Asks DNS, within bounds: each query has its time, so many are under way at once, and what was answered is kept (a
 * minute unless told otherwise, also that there is nothing) and shared by who asks meanwhile.
 */
export class DnsLookUps {
  private readonly resolver = new Resolver(QUERY_MS)
  private readonly inTurn = pLimit(MAX_QUERIES_AT_ONCE)
  private readonly underWay = new Map<string, Promise<DnsAnswer>>()
  private readonly kept = new LRUCache<string, DnsAnswer>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (answer, key) => key.length + JSON.stringify(answer).length,
  })
  private readonly keptMs: number

  /** `servers` are addresses with or without a port; null for the system's. */
  constructor(servers: readonly string[] | null, { keptMs = KEPT_MS } = {}) {
    if (servers !== null) this.resolver.setServers(servers)
    this.keptMs = keptMs
  }

  /** Never rejects. The answer is shared: it must not be changed. */
  ask(name: string, type: string): Promise<DnsAnswer> {
    if (name.length > LONGEST_NAME) return Promise.resolve({ code: 'ENOTFOUND' })
    const key = `${type} ${name.toLowerCase()}`
    const kept = this.kept.get(key)
    if (kept !== undefined) return Promise.resolve(kept)
    let asking = this.underWay.get(key)
    if (asking === undefined) {
      asking = this.inTurn(() => this.askServers(name, type)).then((answer) => {
        const ttl = isLasting(answer) ? this.keptMs : Math.min(this.keptMs, FAILURE_KEPT_MS)
        if (ttl > 0) this.kept.set(key, answer, { ttl })
        this.underWay.delete(key)
        return answer
      })
      this.underWay.set(key, asking)
    }
    return asking
  }

  /** Gives up what is being asked. */
  close(): void {
    this.resolver.cancel()
  }

  private async askServers(name: string, type: string): Promise<DnsAnswer> {
    try {
      return { records: await this.resolver.resolve(name, type) }
    } catch (error) {
      return { code: codeOf(error) }
    }
  }
}

function isLasting(answer: DnsAnswer): boolean {
  return !('code' in answer) || answer.code === 'ENOTFOUND' || answer.code === 'ENODATA'
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'EUNKNOWN'
}
