import { BlockList, isIPv6 } from 'node:net'

/** An IPv4 address that a socket for both families shows as `::ffff:a.b.c.d` (RFC 4291, section 2.5.5.2). */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '')
}

/**
 * What counts as one remote address for a limit: of IPv6 the first 64 bits, since a host has the rest to choose
 * from (RFC 4291, section 2.5.4).
 */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.replace(/%.*$/, '').toLowerCase().split('::', 2)
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  // A tail such as 1.2.3.4 stands for two groups, and behind the first four.
  const zeros = tail === undefined ? 0 : Math.max(8 - before.length - after.length, 0)
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, 4)
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`
}

/** Addresses and networks, as `10.0.0.7` or `10.0.0.0/8`, of either family. */
export class Networks {
  private readonly list = new BlockList()

  /** Throws if a text is neither. */
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
