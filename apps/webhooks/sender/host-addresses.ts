import { lookup } from 'node:dns/promises'
import { DnsLookUps, type DnsAnswer } from '#libs/runtime/dns-look-ups.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing/waiting.js'
import { knownAddresses } from './destination.js'
import { AttemptFault } from './faults.js'

const KEPT_MS = 10_000
/** A name may have any number; no more than these are tried. */
const MAX_ADDRESSES = 8
/** Certain answers: there is no such name, or it has no address, or it can be no name. */
const NOTHING = /^(ENOTFOUND|ENODATA|EBADNAME)$/

export interface HostAddressesOptions {
  /** Null for the system's. */
  dnsServers: readonly string[] | null
  /**
   * Whether names are asked of the machine, as all else on it asks: its hosts file and search domains count. That has
   * a few threads for the whole process, which names that don't answer would hold.
   */
  asksMachine: boolean
  withinMs: number
  keptMs?: number
}

/** The addresses of the hosts of endpoints. */
export class HostAddresses {
  private readonly dns: DnsLookUps

  constructor(private readonly options: HostAddressesOptions) {
    this.dns = new DnsLookUps(options.dnsServers, { keptMs: options.keptMs ?? KEPT_MS })
  }

  /** IPv4 first, at least one. Rejects with AttemptFault. */
  async of(host: string): Promise<readonly string[]> {
    const known = knownAddresses(host)
    if (known !== null) return known
    const addresses = this.options.asksMachine ? await this.fromMachine(host) : await this.fromDns(host)
    return addresses.slice(0, MAX_ADDRESSES)
  }

  close(): void {
    this.dns.close()
  }

  private async fromMachine(host: string): Promise<string[]> {
    try {
      const found = await beforeDeadline(
        this.options.withinMs,
        lookup(host, { all: true, order: 'ipv4first' }),
      )
      return found.map(({ address }) => address)
    } catch (error) {
      throw nameFault(error instanceof DeadlineError)
    }
  }

  private async fromDns(host: string): Promise<string[]> {
    const answers = await Promise.all(['A', 'AAAA'].map((type) => this.ask(host, type)))
    const addresses = answers.flatMap((answer) => ('records' in answer ? (answer.records as string[]) : []))
    if (addresses.length > 0) return addresses
    const isUnknown = answers.some((answer) => 'code' in answer && !NOTHING.test(answer.code))
    throw nameFault(isUnknown)
  }

  private async ask(host: string, type: string): Promise<DnsAnswer> {
    try {
      return await beforeDeadline(this.options.withinMs, this.dns.ask(host, type))
    } catch (error) {
      if (error instanceof DeadlineError) return { code: 'ETIMEOUT' }
      throw error
    }
  }
}

function nameFault(isUnknown: boolean): AttemptFault {
  const detail = isUnknown ? 'the addresses of the name could not be asked for' : 'the name has no address'
  return new AttemptFault('dns', detail)
}
