import { Resolver } from 'node:dns/promises'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { beforeDeadline, DeadlineError } from '#libs/timing/deadline.js'

/*
 * Relies on Node's resolver (c-ares): time and tries for each query, any port, errors by code; and on mailauth to ask
 * with a name and a record type, as `dns.promises.resolve` is asked.
 */

const QUERY_MS = { timeout: 1_500, tries: 2, maxTimeout: 3_000 }
const MOST_QUERIES_AT_ONCE = 1_000
/** RFC 7208 allows 10 for SPF, some of which ask twice; then the keys, and the walk for DMARC. */
const MOST_QUERIES_OF_A_MAIL = 60
const KEPT_MS = 60_000
const FAILURE_KEPT_MS = 5_000
const KEPT_BYTES = 16 * 1024 * 1024
const LONGEST_NAME = 253

type Records = Awaited<ReturnType<Resolver['resolve']>>
type Answer = { records: Records } | { code: string }
export type Resolve = (name: string, type: string) => Promise<string[][] | string[]>

/**
 * Asks DNS for the judgement of mails. Each query has its time, each mail its number of queries and its end; what was
 * answered is kept for a minute, also that there is nothing, and shared by who asks meanwhile.
 */
export class MailDns {
  private readonly resolver = new Resolver(QUERY_MS)
  private readonly inTurn = pLimit(MOST_QUERIES_AT_ONCE)
  private readonly underWay = new Map<string, Promise<Answer>>()
  private readonly kept = new LRUCache<string, Answer>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (answer, key) => key.length + JSON.stringify(answer).length,
  })

  /** `servers` are addresses with or without a port; null for the system's. */
  constructor(servers: readonly string[] | null) {
    if (servers !== null) this.resolver.setServers(servers)
  }

  /**
   * What one mail asks with, for so long from its first question on: reading a large mail comes before that. Rejects
   * with an error that has the code of c-ares (`ENOTFOUND`, `ENODATA`, `ETIMEOUT` …), `ETIMEOUT` past the mail's time,
   * `ETOOMANY` past its number.
   */
  forMail(withinMs: number): Resolve {
    let asked = 0
    let deadlineMs: number | null = null
    return async (name, type) => {
      asked += 1
      deadlineMs ??= performance.now() + withinMs
      if (asked > MOST_QUERIES_OF_A_MAIL) throw new DnsError('ETOOMANY', name)
      const answer = await before(deadlineMs, this.ask(name, type))
      if ('code' in answer) throw new DnsError(answer.code, name)
      // MX and the like are objects; mailauth takes what Node's resolver gives.
      return structuredClone(answer.records) as string[]
    }
  }

  /** Gives up what is being asked. */
  close(): void {
    this.resolver.cancel()
  }

  private ask(name: string, type: string): Promise<Answer> {
    if (name.length > LONGEST_NAME) return Promise.resolve({ code: 'ENOTFOUND' })
    const key = `${type} ${name.toLowerCase()}`
    const kept = this.kept.get(key)
    if (kept !== undefined) return Promise.resolve(kept)
    let asking = this.underWay.get(key)
    if (asking === undefined) {
      asking = this.inTurn(() => this.askServers(name, type)).then((answer) => {
        this.kept.set(key, answer, { ttl: isLasting(answer) ? KEPT_MS : FAILURE_KEPT_MS })
        this.underWay.delete(key)
        return answer
      })
      this.underWay.set(key, asking)
    }
    return asking
  }

  private async askServers(name: string, type: string): Promise<Answer> {
    try {
      return { records: await this.resolver.resolve(name, type) }
    } catch (error) {
      return { code: codeOf(error) }
    }
  }
}

class DnsError extends Error {
  override readonly name = 'DnsError'

  constructor(
    readonly code: string,
    readonly hostname: string,
  ) {
    super(`${code} for ${hostname}`)
  }
}

function isLasting(answer: Answer): boolean {
  return !('code' in answer) || answer.code === 'ENOTFOUND' || answer.code === 'ENODATA'
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'EUNKNOWN'
}

async function before(deadlineMs: number, asking: Promise<Answer>): Promise<Answer> {
  const leftMs = deadlineMs - performance.now()
  if (leftMs <= 0) return { code: 'ETIMEOUT' }
  try {
    return await beforeDeadline(leftMs, asking)
  } catch (error) {
    if (error instanceof DeadlineError) return { code: 'ETIMEOUT' }
    throw error
  }
}
