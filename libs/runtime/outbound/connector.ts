import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP, isIPv6, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { buildConnector } from 'undici'
import { DnsLookups } from '#libs/runtime/dns-lookups.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing.js'
import { knownAddresses, NOT_PUBLIC, type DestinationPolicy } from './destination.js'
import { connectError, tlsError, AttemptError } from './attempt-error.js'

export const CONNECTOR_BOUNDS = {
  lookupMs: 5_000,
  /** How long DNS answers are cached. */
  dnsCacheMs: 10_000,
  /** The timeout of a TCP connection to any of the addresses. */
  connectMs: 5_000,
  tlsMs: 5_000,
}

type ConnectorBounds = Readonly<typeof CONNECTOR_BOUNDS>

export interface ConnectorOptions extends ConnectorBounds {
  policy: DestinationPolicy
  /** Null for the system's servers. */
  dnsServers: readonly string[] | null
  /**
   * Whether private addresses are allowed. Then, without `dnsServers`, names are resolved by the operating system, with its
   * hosts file and search domains. That uses the few threads of libuv's pool, which slow lookups can exhaust.
   */
  allowPrivate: boolean
}

/** How long an address is tried before the next one. */
const EACH_ADDRESS_MS = 1_000
const MAX_ADDRESSES = 8
/** Errors which mean that the name has no address. Others mean that the lookup failed. */
const NO_ADDRESS = /^(ENOTFOUND|ENODATA|EBADNAME)$/

/**
 * Opens connections for requests. It resolves a name once, checks the addresses, and connects to those, because a
 * second lookup could return others. The check does not rely on the `lookup` option of `connect`, which Node does not
 * call if the host is an IP address.
 */
export class Connector {
  private readonly dns: DnsLookups
  private readonly closing = new AbortController()

  constructor(private readonly options: ConnectorOptions) {
    this.dns = new DnsLookups(options.dnsServers, { cacheMs: options.dnsCacheMs })
  }

  /** The connector for undici. Errors are AttemptErrors. */
  readonly connect: buildConnector.connector = (wanted, callback) => {
    this.open(wanted).then(
      (socket) => callback(null, socket),
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    )
  }

  /** Destroys the connections that are being opened. */
  close(): void {
    this.dns.close()
    this.closing.abort()
  }

  private async open({ hostname, protocol, port }: buildConnector.Options): Promise<Socket> {
    const addresses = await this.addressesOf(hostname)
    // Private addresses are skipped, not refused: DNS64, for example, adds some to a name with public addresses.
    const allowed = addresses.filter((address) => this.options.policy.isAddressAllowed(address))
    if (allowed.length === 0) throw new AttemptError('refused-address', NOT_PUBLIC)
    const isTls = protocol === 'https:'
    const tcp = await this.openTcp(allowed, port === '' ? (isTls ? 443 : 80) : Number(port))
    return isTls ? await this.openTls(tcp, hostname) : tcp
  }

  /** At least one address, IPv4 first. Rejects with AttemptError. */
  private async addressesOf(host: string): Promise<readonly string[]> {
    const known = knownAddresses(host)
    if (known !== null) return known
    const { allowPrivate, dnsServers } = this.options
    const addresses =
      allowPrivate && dnsServers === null ? await this.lookUpWithSystem(host) : await this.queryDns(host)
    return addresses.slice(0, MAX_ADDRESSES)
  }

  private async lookUpWithSystem(host: string): Promise<string[]> {
    try {
      const lookingUp = lookup(host, { all: true, order: 'ipv4first' })
      const found = await beforeDeadline(this.options.lookupMs, lookingUp)
      return found.map(({ address }) => address)
    } catch (error) {
      throw nameError(error instanceof DeadlineError)
    }
  }

  private async queryDns(host: string): Promise<string[]> {
    const answers = await Promise.all(
      ['A', 'AAAA'].map((type) => this.dns.resolve(host, type, this.options.lookupMs)),
    )
    const addresses = answers.flatMap((answer) => ('records' in answer ? (answer.records as string[]) : []))
    if (addresses.length > 0) return addresses
    const hasFailed = answers.some((answer) => 'code' in answer && !NO_ADDRESS.test(answer.code))
    throw nameError(hasFailed)
  }

  private openTcp(addresses: readonly string[], port: number): Promise<Socket> {
    const socket = connect({
      // A placeholder: `lookup` returns the checked addresses.
      host: 'checked.invalid',
      lookup: answering(addresses),
      port,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: EACH_ADDRESS_MS,
      noDelay: true,
    })
    const late = 'the host did not accept the connection in time'
    return this.opened(socket, 'connect', { withinMs: this.options.connectMs, late, errorFrom: connectError })
  }

  private openTls(tcp: Socket, hostname: string): Promise<Socket> {
    const socket = connectTls({
      socket: tcp,
      // The host that the certificate must be for. A name is also sent as SNI (RFC 6066, section 3).
      host: hostname,
      ...(isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, '') } : {}),
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
      // Even if NODE_TLS_REJECT_UNAUTHORIZED is 0.
      rejectUnauthorized: true,
    })
    const late = 'the TLS handshake did not finish in time'
    return this.opened(socket, 'secureConnect', { withinMs: this.options.tlsMs, late, errorFrom: tlsError })
  }

  /** Resolves with the socket at the event. Otherwise destroys the socket and rejects. */
  private async opened(
    socket: Socket,
    event: 'connect' | 'secureConnect',
    { withinMs, late, errorFrom }: { withinMs: number; late: string; errorFrom: (error: unknown) => Error },
  ): Promise<Socket> {
    const deadline = AbortSignal.timeout(withinMs)
    // It may emit an error again, or before its user listens.
    socket.on('error', () => undefined)
    try {
      await once(socket, event, { signal: AbortSignal.any([deadline, this.closing.signal]) })
      return socket
    } catch (error) {
      socket.destroy()
      throw deadline.aborted ? new AttemptError('timeout', late) : errorFrom(error)
    }
  }
}

function nameError(hasFailed: boolean): AttemptError {
  const detail = hasFailed ? 'the DNS lookup of the name failed' : 'the name has no address'
  return new AttemptError('dns', detail)
}

function answering(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
  return (_hostname, _options, callback) => callback(null, all)
}
