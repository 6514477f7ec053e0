/** Counts by name, such as the code of a reply. */
export class Counts {
  private readonly byName = new Map<string, number>()

  add(name: string): void {
    this.byName.set(name, (this.byName.get(name) ?? 0) + 1)
  }

  get total(): number {
    return [...this.byName.values()].reduce((sum, count) => sum + count, 0)
  }

  toJson(): Record<string, number> {
    return Object.fromEntries(this.byName)
  }
}

/** Such as `550: 3, 421: 1`. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts)
  return entries.length === 0 ? '0' : entries.map(([name, count]) => `${name}: ${count}`).join(', ')
}

/** To three decimal places. */
export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
