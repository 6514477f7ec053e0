import { DnsLookUps, type DnsAnswer } from '#libs/runtime/dns-look-ups.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing/waiting.js'

/** RFC 7208 allows 10 for SPF, some of which ask twice; then the keys, and the walk for DMARC. */
const MAX_QUERIES_OF_A_MAIL = 60

/** Relies on mailauth to ask with a name and a record type, as `dns.promises.resolve` is asked. */
export type Resolve = (name: string, type: string) => Promise<string[][] | string[]>

/** DNS for the verification of mails: each mail has a number of queries and a deadline. */
export class MailDns {
  private readonly lookUps: DnsLookUps

  /** `servers` are addresses with or without a port; null for the system's. */
  constructor(servers: readonly string[] | null) {
    this.lookUps = new DnsLookUps(servers)
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
      if (asked > MAX_QUERIES_OF_A_MAIL) throw new DnsError('ETOOMANY', name)
      const answer = await before(deadlineMs, this.lookUps.ask(name, type))
      if ('code' in answer) throw new DnsError(answer.code, name)
      // MX and the like are objects; mailauth takes what Node's resolver gives.
      return structuredClone(answer.records) as string[]
    }
  }

  /** Gives up what is being asked. */
  close(): void {
    this.lookUps.close()
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

async function before(deadlineMs: number, asking: Promise<DnsAnswer>): Promise<DnsAnswer> {
  const leftMs = deadlineMs - performance.now()
  if (leftMs <= 0) return { code: 'ETIMEOUT' }
  try {
    return await beforeDeadline(leftMs, asking)
  } catch (error) {
    if (error instanceof DeadlineError) return { code: 'ETIMEOUT' }
    throw error
  }
}
