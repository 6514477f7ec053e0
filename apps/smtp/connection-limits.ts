/** Counts open connections, in all and for each remote address. */
export class ConnectionLimits {
  private readonly byAddress = new Map<string, number>()
  private open = 0

  constructor(
    private readonly most: number,
    private readonly mostPerAddress: number,
  ) {}

  get count(): number {
    return this.open
  }

  /** Whether one more may be opened; it then counts until `leave`. */
  tryEnter(address: string): boolean {
    const count = this.byAddress.get(address) ?? 0
    if (this.open >= this.most || count >= this.mostPerAddress) return false
    this.open += 1
    this.byAddress.set(address, count + 1)
    return true
  }

  leave(address: string): void {
    const count = this.byAddress.get(address) ?? 0
    this.open -= 1
    if (count > 1) this.byAddress.set(address, count - 1)
    else this.byAddress.delete(address)
  }
}

/** An IPv4 address that a socket for both families shows as `::ffff:a.b.c.d` (RFC 4291, section 2.5.5.2). */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '')
}
