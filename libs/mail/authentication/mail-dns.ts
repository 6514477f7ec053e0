import { DnsLookups } from '#libs/runtime/dns-lookups.js'

/** RFC 7208 allows 10 lookups for SPF, some with two queries. DKIM keys and DMARC records need the others. */
const MAX_QUERIES_PER_MAIL = 60

/** How mailauth resolves names: with the parameters of `dns.promises.resolve`. */
export type Resolve = (name: string, type: string) => Promise<string[][] | string[]>

/** DNS for the verification of mails, with a limit of queries and a deadline for each mail. */
export class MailDns {
  private readonly lookUps: DnsLookups

  /** `servers` are addresses with or without a port, or null for the servers of the system. */
  constructor(servers: readonly string[] | null) {
    this.lookUps = new DnsLookups(servers)
  }

  /**
   * The resolver of one mail. Its time begins with the first query, because mailauth reads the whole mail before that.
   * Rejects with an error that has the code of c-ares (`ENOTFOUND`, `ENODATA`, `ETIMEOUT` …): `ETIMEOUT` also after the
   * deadline, and `ETOOMANY` above the limit of queries.
   */
  forMail(withinMs: number): Resolve {
    let queries = 0
    let deadlineMs: number | null = null
    return async (name, type) => {
      queries += 1
      deadlineMs ??= performance.now() + withinMs
      if (queries > MAX_QUERIES_PER_MAIL) throw dnsError('ETOOMANY', name)
      const answer = await this.lookUps.resolve(name, type, deadlineMs - performance.now())
      if ('code' in answer) throw dnsError(answer.code, name)
      // Records such as MX are objects; mailauth expects the values of Node's resolver. They are copied, as the cache
      // shares them.
      return structuredClone(answer.records) as string[]
    }
  }

  /** Cancels pending queries. */
  close(): void {
    this.lookUps.close()
  }
}

/** An error as Node's resolver rejects with. */
function dnsError(code: string, hostname: string): Error {
  return Object.assign(new Error(`${code} for ${hostname}`), { code, hostname })
}
