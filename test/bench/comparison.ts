import { median, spreadOf, type Figure } from './figure.js'
import type { Section, SectionContext } from './section.js'
import { tableOf, formatted } from './table.js'

/** A figure of two builds, with the median of each turn. */
export interface Compared {
  name: string
  unit: string
  other: readonly number[]
  own: readonly number[]
}

/**
 * Runs a section alternately on another build and on this one, one round at a time. Every second time this build goes
 * first, because the other load on the machine may increase or decrease.
 */
export async function compare(
  section: Section,
  context: SectionContext,
  otherBuild: string,
): Promise<Compared[]> {
  const { plan } = context
  const turns: { other: Figure[]; own: Figure[] }[] = []
  const on = (build: string) => {
    process.env.TEST_BUILD = build
    return section({ ...context, plan: { ...plan, rounds: 1 } })
  }
  for (let turn = 0; turn < plan.rounds; turn++) {
    if (turn % 2 === 0) {
      const other = await on(otherBuild)
      turns.push({ other, own: await on(process.cwd()) })
    } else {
      const own = await on(process.cwd())
      turns.push({ other: await on(otherBuild), own })
    }
  }
  const values = (figures: Figure[], at: number) => median(figures[at]?.rounds ?? [])
  return (turns[0]?.own ?? []).map(({ name, unit }, at) => ({
    name,
    unit,
    other: turns.map(({ other }) => values(other, at)),
    own: turns.map(({ own }) => values(own, at)),
  }))
}

/** The ratio is the median of the turns' ratios; the spread is the distance between the best and the worst of them. */
export function comparisonTable(compared: readonly Compared[]): string {
  const rows = compared.map(({ name, unit, other, own }) => {
    const ratios = own.map((value, turn) => value / (other[turn] ?? NaN))
    return [
      name,
      `${formatted(median(other))} ${unit}`,
      `${formatted(median(own))} ${unit}`,
      median(ratios).toFixed(2),
      `${Math.round(spreadOf(ratios) * 100)} %`,
    ]
  })
  return tableOf(['figure', 'other build', 'this build', 'ratio', 'spread'], rows)
}
