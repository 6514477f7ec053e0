import { BlockList, isIPv6 } from 'node:net'

/** Converts an IPv4-mapped IPv6 address, `::ffff:a.b.c.d`, to IPv4 (RFC 4291, section 2.5.5.2). */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '')
}

/**
 * The part of an address that limits apply to. For IPv6 this is the first 64 bits, since a host can choose the rest
 * (RFC 4291, section 2.5.4).
 */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.replace(/%.*$/, '').toLowerCase().split('::', 2)
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  // A tail such as 1.2.3.4 is two groups, but never among the first four.
  const zeros = tail === undefined ? 0 : Math.max(8 - before.length - after.length, 0)
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, 4)
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`
}

/** A set of IPv4 and IPv6 addresses and networks, such as `10.0.0.7` and `10.0.0.0/8`. */
export class Networks {
  private readonly list = new BlockList()

  /** Throws if a text is neither an address nor a network. */
  constructor(texts: readonly string[]) {
    for (const text of texts) {
      const [address = '', prefix] = text.split('/', 2)
      const family = isIPv6(address) ? 'ipv6' : 'ipv4'
      if (prefix === undefined) this.list.addAddress(address, family)
      else this.list.addSubnet(address, Number(prefix), family)
    }
  }

  has(address: string): boolean {
    return this.list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
  }
}
