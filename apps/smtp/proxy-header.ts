import { isIPv4, isIPv6, type Socket, SocketAddress } from 'node:net'
import { plainAddress } from '#libs/runtime/remote-address.js'

/**
 * The client whose connection a load balancer forwards; null if the balancer itself connects (a health check), or the
 * client has no IP address.
 */
type ProxySource = { address: string } | null

type ProxyHeader =
  { state: 'complete'; bytes: number; source: ProxySource } | { state: 'partial' } | { state: 'malformed' }

const V1 = Buffer.from('PROXY')
const V2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
/** The length with the CRLF (section 2.1). */
const MAX_V1_BYTES = 107
const V1_UNKNOWN = /^PROXY UNKNOWN( |$)/
const V1_TCP = /^PROXY (TCP[46]) (\S+) (\S+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4})$/
const V2_HEAD_BYTES = 16
/** Far above the length of addresses and of what balancers add to them, such as certificate names and ids. */
const MAX_V2_BYTES = 2_048
const TCP4 = 0x11
const TCP6 = 0x21
/** Valid families and protocols without a TCP address: UNSPEC, UDP, UNIX. */
const WITHOUT_ADDRESS = new Set([0x00, 0x01, 0x02, 0x10, 0x12, 0x20, 0x22, 0x30, 0x31, 0x32])

const PARTIAL: ProxyHeader = { state: 'partial' }
const MALFORMED: ProxyHeader = { state: 'malformed' }

/**
 * Parses the header of the PROXY protocol, version 1 or 2, from a connection's first bytes (HAProxy's
 * proxy-protocol.txt, sections 2.1 and 2.2). Bytes that can't become a header are malformed at once.
 */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (matchesStart(bytes, V2)) return readV2(bytes)
  return matchesStart(bytes, V1) ? readV1(bytes) : MALFORMED
}

function matchesStart(bytes: Buffer, signature: Buffer): boolean {
  const length = Math.min(bytes.length, signature.length)
  return bytes.compare(signature, 0, length, 0, length) === 0
}

function readV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, MAX_V1_BYTES).indexOf('\r\n')
  if (end < 0) return bytes.length < MAX_V1_BYTES ? PARTIAL : MALFORMED
  const line = bytes.toString('latin1', 0, end)
  if (V1_UNKNOWN.test(line)) return { state: 'complete', bytes: end + 2, source: null }
  const [, family, address = '', destination = '', ...ports] = V1_TCP.exec(line) ?? []
  const isAddress = family === 'TCP4' ? isIPv4 : isIPv6
  if (!isAddress(address) || !isAddress(destination)) return MALFORMED
  if (ports.some((port) => Number(port) > 65_535)) return MALFORMED
  return { state: 'complete', bytes: end + 2, source: { address: normalize(address) } }
}

/**
 * Normalizes an address (RFC 5952), so that it counts as one address in the limits. A balancer that listens on both
 * families sends IPv4 addresses mapped to IPv6.
 */
function normalize(address: string): string {
  return isIPv6(address) ? plainAddress(new SocketAddress({ address, family: 'ipv6' }).address) : address
}

function readV2(bytes: Buffer): ProxyHeader {
  if (bytes.length < V2_HEAD_BYTES) return PARTIAL
  const command = bytes.readUInt8(12)
  const family = bytes.readUInt8(13)
  const length = V2_HEAD_BYTES + bytes.readUInt16BE(14)
  if ((command !== 0x20 && command !== 0x21) || length > MAX_V2_BYTES) return MALFORMED
  const isRelayed = command === 0x21 && (family === TCP4 || family === TCP6)
  const addressBytes = family === TCP4 ? 4 : 16
  if (isRelayed && length < V2_HEAD_BYTES + 2 * addressBytes + 4) return MALFORMED
  if (command === 0x21 && !isRelayed && !WITHOUT_ADDRESS.has(family)) return MALFORMED
  if (bytes.length < length) return PARTIAL
  if (!isRelayed) return { state: 'complete', bytes: length, source: null }
  const source = bytes.subarray(V2_HEAD_BYTES, V2_HEAD_BYTES + addressBytes)
  const address =
    addressBytes === 4 ? source.join('.') : (source.toString('hex').match(/.{4}/g) ?? []).join(':')
  return { state: 'complete', bytes: length, source: { address: normalize(address) } }
}

/**
 * Reads the header of the PROXY protocol from a new socket, and leaves the bytes after it unread. Resolves with the
 * source, with 'late' if the header has not arrived in time, or with 'malformed', which includes a socket that ends
 * before the header. Never rejects.
 */
export function readProxySource(
  socket: Socket,
  withinMs: number,
): Promise<ProxySource | 'malformed' | 'late'> {
  const { promise, resolve } = Promise.withResolvers<ProxySource | 'malformed' | 'late'>()
  let received = Buffer.alloc(0)
  const timer = setTimeout(() => settle('late'), withinMs)
  const onData = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    const header = readProxyHeader(received)
    if (header.state === 'partial') return
    settle(header.state === 'malformed' ? 'malformed' : header.source)
    if (header.state === 'complete' && received.length > header.bytes) {
      socket.unshift(received.subarray(header.bytes))
    }
  }
  const onEnd = () => settle('malformed')
  const settle = (result: ProxySource | 'malformed' | 'late') => {
    clearTimeout(timer)
    socket.pause()
    socket.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onEnd)
    resolve(result)
  }
  socket.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd)
  return promise
}
