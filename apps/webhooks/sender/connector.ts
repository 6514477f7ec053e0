import { connect, isIP, isIPv6, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { buildConnector } from 'undici'
import { NOT_PUBLIC, type DestinationPolicy } from './destination.js'
import { connectFault, tlsFault, AttemptFault } from './faults.js'
import type { HostAddresses } from './host-addresses.js'

export interface ConnectorOptions {
  addresses: HostAddresses
  policy: DestinationPolicy
  /** For a TCP connection to one of the addresses. */
  connectMs: number
  tlsMs: number
}

/** Before the next address is tried. */
const EACH_ADDRESS_MS = 1_000

/**
 * Opens the connections that requests are sent over, each only to an address that has been checked, in this connection,
 * and to no other: a name may lead elsewhere at the next look-up. Node asks no `lookup` where the host is an address,
 * so the check does not rely on one.
 */
export class Connector {
  private readonly opening = new Set<Socket>()
  private isClosed = false

  constructor(private readonly options: ConnectorOptions) {}

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
    for (const socket of this.opening) socket.destroy()
  }

  private async open({ hostname, protocol, port }: buildConnector.Options): Promise<Socket> {
    const addresses = await this.options.addresses.of(hostname)
    // The others are not tried: a public name may have private addresses beside public ones, as DNS64 makes them.
    const allowed = addresses.filter((address) => this.options.policy.isAddressAllowed(address))
    if (allowed.length === 0) throw new AttemptFault('refused-address', NOT_PUBLIC)
    const isTls = protocol === 'https:'
    const tcp = await this.openTcp(allowed, port === '' ? (isTls ? 443 : 80) : Number(port))
    return isTls ? await this.openTls(tcp, hostname) : tcp
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

  /** The socket once it is that far; else it is destroyed. */
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

function answering(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
  return (_hostname, _options, callback) => callback(null, all)
}
