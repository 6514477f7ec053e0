import { lookup } from 'node:dns/promises'
import { connect, isIP, isIPv6, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { buildConnector } from 'undici'
import { DnsLookUps, type DnsAnswer } from '#libs/runtime/dns-look-ups.js'
import { beforeDeadline, DeadlineError } from '#libs/runtime/timing/waiting.js'
import { knownAddresses, NOT_PUBLIC, type DestinationPolicy } from './destination.js'
import { connectFault, tlsFault, AttemptFault } from './faults.js'

export interface ConnectorOptions {
  policy: DestinationPolicy
  /** Null for the system's. */
  dnsServers: readonly string[] | null
  /**
   * Whether names are asked of the machine, as all else on it asks: its hosts file and search domains count. That has
   * a few threads for the whole process, which names that don't answer would hold.
   */
  asksMachine: boolean
  lookUpMs: number
  /** For which what DNS said is used. */
  dnsKeptMs: number
  /** For a TCP connection to one of the addresses. */
  connectMs: number
  tlsMs: number
}

/** Before the next address is tried. */
const EACH_ADDRESS_MS = 1_000
/** A name may have any number; no more than these are tried. */
const MAX_ADDRESSES = 8
/** Certain answers: there is no such name, or it has no address, or it can be no name. */
const NOTHING = /^(ENOTFOUND|ENODATA|EBADNAME)$/

/**
 * Opens the connections that requests are sent over, each only to an address that has been checked, in this connection,
 * and to no other: a name may lead elsewhere at the next look-up. Node asks no `lookup` where the host is an address,
 * so the check does not rely on one.
 */
export class Connector {
  private readonly dns: DnsLookUps
  private readonly opening = new Set<Socket>()
  private isClosed = false

  constructor(private readonly options: ConnectorOptions) {
    this.dns = new DnsLookUps(options.dnsServers, { keptMs: options.dnsKeptMs })
  }

  /** As undici asks for a connection; what fails is an AttemptFault. */
  readonly connect: buildConnector.connector = (wanted, callback) => {
    this.open(wanted).then(
      (socket) => callback(null, socket),
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    )
  }

  /** Gives up what is being opened. */
  close(): void {
    this.isClosed = true
    this.dns.close()
    for (const socket of this.opening) socket.destroy()
  }

  private async open({ hostname, protocol, port }: buildConnector.Options): Promise<Socket> {
    const addresses = await this.addressesOf(hostname)
    // The others are not tried: a public name may have private addresses beside public ones, as DNS64 makes them.
    const allowed = addresses.filter((address) => this.options.policy.isAddressAllowed(address))
    if (allowed.length === 0) throw new AttemptFault('refused-address', NOT_PUBLIC)
    const isTls = protocol === 'https:'
    const tcp = await this.openTcp(allowed, port === '' ? (isTls ? 443 : 80) : Number(port))
    return isTls ? await this.openTls(tcp, hostname) : tcp
  }

  /** IPv4 first, at least one. Rejects with AttemptFault. */
  private async addressesOf(host: string): Promise<readonly string[]> {
    const known = knownAddresses(host)
    if (known !== null) return known
    const addresses = this.options.asksMachine ? await this.askMachine(host) : await this.askDns(host)
    return addresses.slice(0, MAX_ADDRESSES)
  }

  private async askMachine(host: string): Promise<string[]> {
    try {
      const asked = lookup(host, { all: true, order: 'ipv4first' })
      const found = await beforeDeadline(this.options.lookUpMs, asked)
      return found.map(({ address }) => address)
    } catch (error) {
      throw nameFault(error instanceof DeadlineError)
    }
  }

  private async askDns(host: string): Promise<string[]> {
    const answers = await Promise.all(['A', 'AAAA'].map((type) => this.askDnsFor(host, type)))
    const addresses = answers.flatMap((answer) => ('records' in answer ? (answer.records as string[]) : []))
    if (addresses.length > 0) return addresses
    const isUnknown = answers.some((answer) => 'code' in answer && !NOTHING.test(answer.code))
    throw nameFault(isUnknown)
  }

  private async askDnsFor(host: string, type: string): Promise<DnsAnswer> {
    try {
      return await beforeDeadline(this.options.lookUpMs, this.dns.ask(host, type))
    } catch (error) {
      if (error instanceof DeadlineError) return { code: 'ETIMEOUT' }
      throw error
    }
  }

  private openTcp(addresses: readonly string[], port: number): Promise<Socket> {
    const late = new AttemptFault('timeout', 'the host did not take the connection in time')
    const socket = connect({
      // Known already: it is never looked up.
      host: 'checked.invalid',
      lookup: answering(addresses),
      port,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: EACH_ADDRESS_MS,
      noDelay: true,
    })
    return this.once(socket, 'connect', { withinMs: this.options.connectMs, late, faultOf: connectFault })
  }

  private openTls(tcp: Socket, hostname: string): Promise<Socket> {
    const late = new AttemptFault('timeout', 'the handshake of TLS was not over in time')
    const socket = connectTls({
      socket: tcp,
      // Whom the certificate must be for; a name is sent too (RFC 6066, section 3).
      host: hostname,
      ...(isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, '') } : {}),
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
      // Whatever the environment says.
      rejectUnauthorized: true,
    })
    return this.once(socket, 'secureConnect', { withinMs: this.options.tlsMs, late, faultOf: tlsFault })
  }

  /** Resolves with the socket at the event; else it is destroyed. */
  private async once(
    socket: Socket,
    event: 'connect' | 'secureConnect',
    { withinMs, late, faultOf }: { withinMs: number; late: Error; faultOf: (error: unknown) => Error },
  ): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => reject(late), withinMs)
    const onError = (error: unknown) => reject(faultOf(error))
    const onClose = () => reject(faultOf({ code: 'ECONNRESET' }))
    socket.on('error', onError).once('close', onClose)
    socket.once(event, () => resolve(undefined))
    this.opening.add(socket)
    if (this.isClosed) socket.destroy()
    try {
      await promise
      // It may have ended in the same turn.
      if (socket.destroyed) throw faultOf({ code: 'ECONNRESET' })
      return socket
    } catch (error) {
      socket.destroy()
      throw error
    } finally {
      clearTimeout(timer)
      this.opening.delete(socket)
      socket.off('close', onClose)
      // One that failed may say so once more.
      if (!socket.destroyed) socket.off('error', onError)
    }
  }
}

function nameFault(isUnknown: boolean): AttemptFault {
  const detail = isUnknown ? 'the addresses of the name could not be asked for' : 'the name has no address'
  return new AttemptFault('dns', detail)
}

function answering(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
  return (_hostname, _options, callback) => callback(null, all)
}
