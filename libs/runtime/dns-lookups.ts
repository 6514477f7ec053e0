import { Resolver } from 'node:dns/promises'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { codeOf } from './errors.js'
import { beforeDeadline, DeadlineError } from './timing.js'

/*
 * Relies on Node's resolver (c-ares): a timeout and a number of tries for each query, servers on any port, errors with
 * codes, and no cache of its own. It does not read the hosts file.
 */

const QUERY_MS = { timeout: 1_500, tries: 2, maxTimeout: 3_000 }
const MAX_CONCURRENT_QUERIES = 1_000
const CACHE_MS = 60_000
const FAILURE_CACHE_MS = 5_000
const CACHE_BYTES = 16 * 1024 * 1024
const MAX_NAME_CHARACTERS = 253

export type DnsRecords = Awaited<ReturnType<Resolver['resolve']>>
/** The records, or c-ares's error code if there are none (`ENOTFOUND`, `ENODATA`, `ETIMEOUT` …). */
export type DnsAnswer = { records: DnsRecords } | { code: string }

/**
 * Queries DNS within bounds: each query has a timeout and the number of concurrent queries is limited. Answers are
 * cached, for a minute by default, also if there are no records. Concurrent lookups of the same name share one query.
 */
export class DnsLookups {
  private readonly resolver = new Resolver(QUERY_MS)
  private readonly limit = pLimit(MAX_CONCURRENT_QUERIES)
  private readonly cache = new LRUCache<string, Promise<DnsAnswer>>({ maxSize: CACHE_BYTES })
  private readonly cacheMs: number

  /** `servers` are IP addresses with or without a port; null for the system's servers. */
  constructor(servers: readonly string[] | null, { cacheMs = CACHE_MS } = {}) {
    if (servers !== null) this.resolver.setServers(servers)
    this.cacheMs = cacheMs
  }

  /** Resolves with the code `ETIMEOUT` after `withinMs`. Never rejects. The answer is shared and must not be modified. */
  async resolve(name: string, type: string, withinMs: number): Promise<DnsAnswer> {
    if (name.length > MAX_NAME_CHARACTERS) return { code: 'ENOTFOUND' }
    if (withinMs <= 0) return { code: 'ETIMEOUT' }
    return beforeDeadline(withinMs, this.lookUp(name, type)).catch((error: unknown) => {
      if (error instanceof DeadlineError) return { code: 'ETIMEOUT' }
      throw error
    })
  }

  private lookUp(name: string, type: string): Promise<DnsAnswer> {
    const key = `${type} ${name.toLowerCase()}`
    const cached = this.cache.get(key)
    if (cached !== undefined) return cached
    const lookup = this.limit(() => this.query(name, type))
    this.cache.set(key, lookup, { size: key.length })
    void lookup.then((answer) => {
      const ttl = isLasting(answer) ? this.cacheMs : Math.min(this.cacheMs, FAILURE_CACHE_MS)
      const size = key.length + JSON.stringify(answer).length
      if (ttl > 0) this.cache.set(key, lookup, { ttl, size })
      else this.cache.delete(key)
    })
    return lookup
  }

  /** Cancels the queries in progress. */
  close(): void {
    this.resolver.cancel()
  }

  private async query(name: string, type: string): Promise<DnsAnswer> {
    try {
      return { records: await this.resolver.resolve(name, type) }
    } catch (error) {
      return { code: codeOf(error) ?? 'EUNKNOWN' }
    }
  }
}

function isLasting(answer: DnsAnswer): boolean {
  return !('code' in answer) || answer.code === 'ENOTFOUND' || answer.code === 'ENODATA'
}
