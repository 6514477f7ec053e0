import { isIP, isIPv4, isIPv6 } from 'node:net'
import { isUrlTooLong, MAX_URL_CHARACTERS } from '#libs/domain/webhook/endpoint-url.js'
import type { PortRange } from '#libs/runtime/config/setting.js'
import { Networks } from '#libs/runtime/remote-address.js'
import { AttemptError } from './attempt-error.js'

export interface DestinationSettings {
  /** Whether every address and port is allowed. */
  allowPrivate: boolean
  ports: readonly PortRange[]
}

/** The addresses and ports that requests to URLs of customers may be sent to. */
export interface DestinationPolicy {
  isAddressAllowed: (address: string) => boolean
  isPortAllowed: (port: number) => boolean
}

export interface Destination {
  /** Scheme, host and port, as in WHATWG URL. */
  origin: string
  /** The path with the query. */
  path: string
}

export const NOT_PUBLIC = 'the host has no public address'
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

export function policyOf({ allowPrivate, ports }: DestinationSettings): DestinationPolicy {
  if (allowPrivate) return { isAddressAllowed: () => true, isPortAllowed: () => true }
  return {
    isAddressAllowed: isPublicAddress,
    isPortAllowed: (port) => ports.some(({ first, last }) => port >= first && port <= last),
  }
}

/**
 * Parses and checks a URL. The addresses of a host name are checked later, when connecting. WHATWG URL
 * normalizes every notation of an IP address.
 */
export function readDestination(text: string, policy: DestinationPolicy): Destination | AttemptError {
  const url = isUrlTooLong(text) ? null : URL.parse(text)
  const defaultPort = url === null ? undefined : DEFAULT_PORTS[url.protocol]
  if (url === null || defaultPort === undefined) {
    const detail = `it must be an http or https URL of at most ${MAX_URL_CHARACTERS} characters`
    return new AttemptError('invalid-url', detail)
  }
  if (url.username !== '' || url.password !== '') {
    return new AttemptError('invalid-url', 'it must not contain a user name or password')
  }
  const port = url.port === '' ? defaultPort : Number(url.port)
  if (!policy.isPortAllowed(port)) return new AttemptError('refused-port', `port ${port} is not allowed`)
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  if (knownAddresses(host)?.some(policy.isAddressAllowed) === false) {
    return new AttemptError('refused-address', NOT_PUBLIC)
  }
  return { origin: url.origin, path: `${url.pathname}${url.search}` }
}

/**
 * The addresses of a host that needs no DNS lookup: an IP address is its own address, and localhost and its subdomains
 * have the loopback addresses (RFC 6761, section 6.3). Null for other hosts.
 */
export function knownAddresses(host: string): readonly string[] | null {
  if (isIP(host) !== 0) return [host]
  return /(^|\.)localhost\.?$/i.test(host) ? ['127.0.0.1', '::1'] : null
}

interface SpecialRange {
  network: string
  what: string
  /** The document that defines the range. */
  source: string
}

/** The IANA IPv4 Special-Purpose Address Registry, multicast, and addresses of cloud metadata services. */
export const SPECIAL_IPV4: readonly SpecialRange[] = [
  { network: '0.0.0.0/8', what: 'this network; 0.0.0.0 reaches the machine itself', source: 'RFC 791' },
  { network: '10.0.0.0/8', what: 'private use', source: 'RFC 1918' },
  { network: '100.64.0.0/10', what: "shared behind a provider's NAT", source: 'RFC 6598' },
  { network: '127.0.0.0/8', what: 'loopback', source: 'RFC 1122' },
  { network: '168.63.129.16/32', what: "Azure's services for its machines", source: 'Azure' },
  { network: '169.254.0.0/16', what: 'link-local, where clouds serve credentials', source: 'RFC 3927' },
  { network: '172.16.0.0/12', what: 'private use', source: 'RFC 1918' },
  { network: '192.0.0.0/24', what: 'protocol assignments, DS-Lite, NAT64 discovery', source: 'RFC 6890' },
  { network: '192.0.2.0/24', what: 'documentation', source: 'RFC 5737' },
  { network: '192.31.196.0/24', what: 'AS112', source: 'RFC 7535' },
  { network: '192.52.193.0/24', what: 'multicast tunnels (AMT)', source: 'RFC 7450' },
  { network: '192.88.99.0/24', what: '6to4 relays', source: 'RFC 7526' },
  { network: '192.168.0.0/16', what: 'private use', source: 'RFC 1918' },
  { network: '192.175.48.0/24', what: 'AS112', source: 'RFC 7534' },
  { network: '198.18.0.0/15', what: 'benchmarks', source: 'RFC 2544' },
  { network: '198.51.100.0/24', what: 'documentation', source: 'RFC 5737' },
  { network: '203.0.113.0/24', what: 'documentation', source: 'RFC 5737' },
  { network: '224.0.0.0/4', what: 'multicast', source: 'RFC 5771' },
  { network: '240.0.0.0/4', what: 'reserved, and broadcast', source: 'RFC 1112, RFC 919' },
]

/** The ranges of the IANA IPv6 Special-Purpose Address Registry that are within global unicast. */
export const SPECIAL_IPV6: readonly SpecialRange[] = [
  { network: '2001::/23', what: 'protocol assignments: Teredo, ORCHID, AMT, benchmarks', source: 'RFC 2928' },
  { network: '2001:db8::/32', what: 'documentation', source: 'RFC 3849' },
  { network: '2002::/16', what: '6to4', source: 'RFC 3056' },
  { network: '2620:4f:8000::/48', what: 'AS112', source: 'RFC 7534' },
  { network: '3fff::/20', what: 'documentation', source: 'RFC 9637' },
]

const specialIpv4 = new Networks(SPECIAL_IPV4.map(({ network }) => network))
const specialIpv6 = new Networks(SPECIAL_IPV6.map(({ network }) => network))
/** The only IPv6 addresses that are routed on the Internet to one machine (RFC 4291, section 2.4). */
const globalUnicast = new Networks(['2000::/3'])

/**
 * Whether an address, as the resolver or a URL's host writes it without brackets, belongs to a machine on the Internet.
 * False for an address with a zone, and for text that is not an IP address.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !specialIpv4.has(address)
  if (!isIPv6(address) || address.includes('%')) return false
  return globalUnicast.has(address) && !specialIpv6.has(address)
}
