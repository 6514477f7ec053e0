import { median, spreadOf, type Figure } from './figure.js'
import type { Section, SectionContext } from './section.js'
import { tableOf, formatted } from './table.js'

/** A figure of several programs or builds that were measured in turn. */
export interface Compared {
  name: string
  unit: string
  /** The values of each one by its name. The last one is compared with each of the others. */
  rounds: Readonly<Record<string, readonly number[]>>
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
    rounds: {
      'other build': turns.map(({ other }) => values(other, at)),
      'this build': turns.map(({ own }) => values(own, at)),
    },
  }))
}

/** A ratio is the median of the rounds' ratios; the spread is the distance between the best and the worst of them. */
export function comparisonTable(compared: readonly Compared[]): string {
  const names = Object.keys(compared[0]?.rounds ?? {})
  const others = names.slice(0, -1)
  const rows = compared.map(({ name, unit, rounds }) => {
    const own = Object.values(rounds).at(-1) ?? []
    const ratios = others.map((other) => own.map((value, round) => value / (rounds[other]?.[round] ?? NaN)))
    return [
      name,
      ...names.map((each) => `${formatted(median(rounds[each] ?? []))} ${unit}`),
      ...ratios.flatMap((each) => ratioCells(each)),
    ]
  })
  const ratioColumns = others.flatMap((other) => [others.length > 1 ? `to ${other}` : 'ratio', 'spread'])
  return tableOf(['figure', ...names, ...ratioColumns], rows)
}

/** Empty if the other one has nothing to compare with. */
function ratioCells(ratios: readonly number[]): string[] {
  if (!ratios.every(Number.isFinite)) return ['', '']
  return [median(ratios).toFixed(2), `${Math.round(spreadOf(ratios) * 100)} %`]
}
