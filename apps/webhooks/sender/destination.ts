import { isIP } from 'node:net'
import type { PortRange } from '#libs/runtime/config/setting.js'
import { isPublicAddress } from './special-addresses.js'

export interface DestinationSettings {
  /** Whether any address and port may be sent to. */
  allowPrivate: boolean
  ports: readonly PortRange[]
}

/** What may be sent to. */
export interface DestinationPolicy {
  isAddressAllowed: (address: string) => boolean
  isPortAllowed: (port: number) => boolean
}

export interface Destination {
  kind: 'destination'
  /** Scheme, host and port, as WHATWG URL writes them. */
  origin: string
  /** With the query. */
  path: string
}

export interface RefusedDestination {
  kind: 'refused'
  reason: 'invalid-url' | 'refused-port' | 'refused-address'
  /** A short sentence for who wrote the URL. */
  detail: string
}

export const MAX_URL_CHARACTERS = 2_048
export const NOT_PUBLIC = 'the host has no address that is public'
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

export function policyOf({ allowPrivate, ports }: DestinationSettings): DestinationPolicy {
  if (allowPrivate) return { isAddressAllowed: () => true, isPortAllowed: () => true }
  return {
    isAddressAllowed: isPublicAddress,
    isPortAllowed: (port) => ports.some(({ first, last }) => port >= first && port <= last),
  }
}

/**
 * What a URL leads to, as far as it says so itself: of a name, the addresses are checked once they are connected to.
 * WHATWG URL has turned every other way to write an IP address into the usual one.
 */
export function readDestination(text: string, policy: DestinationPolicy): Destination | RefusedDestination {
  const url = text.length > MAX_URL_CHARACTERS ? null : URL.parse(text)
  const defaultPort = url === null ? undefined : DEFAULT_PORTS[url.protocol]
  if (url === null || defaultPort === undefined) {
    return refused(
      'invalid-url',
      `it must be an http or https URL of at most ${MAX_URL_CHARACTERS} characters`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    return refused('invalid-url', 'it must hold no user name and no password')
  }
  const port = url.port === '' ? defaultPort : Number(url.port)
  if (!policy.isPortAllowed(port)) return refused('refused-port', `port ${port} is not sent to`)
  const known = knownAddresses(hostOf(url.hostname))
  if (known?.some(policy.isAddressAllowed) === false) return refused('refused-address', NOT_PUBLIC)
  return { kind: 'destination', origin: url.origin, path: `${url.pathname}${url.search}` }
}

/**
 * The addresses of a host that needs no look-up: itself where it is one, those of loopback for localhost and all below
 * it (RFC 6761, section 6.3); else null.
 */
export function knownAddresses(host: string): readonly string[] | null {
  if (isIP(host) !== 0) return [host]
  return /(^|\.)localhost\.?$/i.test(host) ? ['127.0.0.1', '::1'] : null
}

function hostOf(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

function refused(reason: RefusedDestination['reason'], detail: string): RefusedDestination {
  return { kind: 'refused', reason, detail }
}
