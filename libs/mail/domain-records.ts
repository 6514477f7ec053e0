import { randomUUID } from 'node:crypto'
import { domainToASCII } from 'node:url'
import type { Domain, DomainChecked, RecordCheck } from '#libs/domain/account/domain.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { DnsLookups, type DnsRecords } from '#libs/runtime/dns-lookups.js'
import { zoneName } from './domain-name.js'

/*
 * The DNS records of a domain: a TXT record that proves it (draft-ietf-dnsop-domain-verification-techniques), and MX
 * records that lead its mail here.
 */

/** A record that the zone of a domain must have. */
export interface DomainRecord {
  check: keyof Domain['checks']
  type: 'TXT' | 'MX'
  name: string
  /** Relative to the registrable domain, as most DNS providers ask for it. */
  zoneName: string
  value: string
  /** Null for a TXT record. */
  priority: number | null
}

const PRIORITY = 10
const QUERY_MS = 5_000
/** More servers would not make an answer more trustworthy. */
const MAX_SERVERS = 3
/** Of each record: DNS may have any number of values. */
const MAX_FOUND = 10
const MAX_FOUND_CHARACTERS = 255

/** The host that MX records must name. */
export function mxHostOf({ mxHost, mailDomain }: Pick<Settings, 'mxHost' | 'mailDomain'>): string {
  return domainToASCII(mxHost ?? mailDomain)
}

/** None for a hosted domain. */
export function recordsOf({ name, token, isHosted, subdomains }: Domain, mxHost: string): DomainRecord[] {
  if (isHosted) return []
  const challenge = `_mayfly-challenge.${name}`
  const mx = { type: 'MX', value: mxHost, priority: PRIORITY } as const
  const record = (check: keyof Domain['checks'], full: string) => ({
    check,
    name: full,
    zoneName: zoneName(full),
  })
  return [
    { ...record('ownership', challenge), type: 'TXT', value: `token=${token}`, priority: null },
    { ...record('mail', name), ...mx },
    ...(subdomains ? [{ ...record('wildcard', `*.${name}`), ...mx }] : []),
  ]
}

/** Looks up the records of domains. Answers are not cached here. */
export class DomainDns {
  private readonly servers: readonly DnsLookups[]
  private readonly mxHost: string

  constructor(settings: Pick<Settings, 'dnsServers' | 'mxHost' | 'mailDomain'>) {
    const { dnsServers } = settings
    const each = dnsServers?.slice(0, MAX_SERVERS).map((server) => [server]) ?? [null]
    this.servers = each.map((servers) => new DnsLookups(servers, { cacheMs: 0 }))
    this.mxHost = mxHostOf(settings)
  }

  /** A record has no result if no server answers clearly, or if the servers disagree. Never rejects. */
  async check(domain: Domain): Promise<DomainChecked['results']> {
    const records = recordsOf(domain, this.mxHost)
    const found = await Promise.all(records.map((record) => this.checkRecord(record)))
    return Object.fromEntries(
      found.flatMap((result, index) => {
        const check = records[index]?.check
        return result === null || check === undefined ? [] : [[check, result]]
      }),
    )
  }

  /** Cancels the queries in progress. */
  close(): void {
    for (const server of this.servers) server.close()
  }

  /**
   * Asks all servers. A record counts only if all that answer agree, so that a forged answer of one is not enough: Node
   * does not tell whether an answer was authenticated (docs/decisions/domains.md).
   */
  private async checkRecord({ type, name, value }: DomainRecord): Promise<RecordCheck | null> {
    // A wildcard record has no name to ask for: any name without records of its own is answered with it.
    const asked = name.replace(/^\*/, () => `mayfly-${randomUUID()}`)
    const answers = await Promise.all(this.servers.map((server) => server.resolve(asked, type, QUERY_MS)))
    const results = answers.flatMap((answer) => {
      if ('records' in answer)
        return [type === 'TXT' ? txtCheck(answer.records, value) : mxCheck(answer.records, value)]
      return answer.code === 'ENOTFOUND' || answer.code === 'ENODATA' ? [checkOf(false, [])] : []
    })
    const [first] = results
    return first !== undefined && results.every(({ status }) => status === first.status) ? first : null
  }
}

function checkOf(isValid: boolean, found: readonly string[]): RecordCheck {
  const status = isValid ? 'valid' : found.length === 0 ? 'missing' : 'invalid'
  const shown = found.map((text) => text.slice(0, MAX_FOUND_CHARACTERS).toWellFormed())
  return { status, found: shown.toSorted().slice(0, MAX_FOUND) }
}

/** One of several records is enough. The strings of a record are joined, and it may have other words. */
function txtCheck(records: DnsRecords, value: string): RecordCheck {
  const texts = listOf(records).map((record) => (Array.isArray(record) ? record.join('') : ''))
  return checkOf(
    texts.some((text) => text.split(/[\s;,]+/).includes(value)),
    texts,
  )
}

/** The records with the lowest preference, which senders try first, must all be ours (RFC 5321, section 5.1). */
function mxCheck(records: DnsRecords, mxHost: string): RecordCheck {
  const all = listOf(records).flatMap((record) =>
    typeof record === 'object' && 'exchange' in record && 'priority' in record
      ? [{ host: record.exchange.toLowerCase().replace(/\.$/, ''), priority: record.priority }]
      : [],
  )
  const lowest = Math.min(...all.map(({ priority }) => priority))
  const first = all.filter(({ priority }) => priority === lowest)
  return checkOf(
    first.length > 0 && first.every(({ host }) => host === mxHost),
    all.map(({ host, priority }) => `${priority} ${host}`),
  )
}

function listOf(records: DnsRecords) {
  return Array.isArray(records) ? records : []
}
