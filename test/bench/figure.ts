/** A bound on the ratio to the baseline if there is one, otherwise on the figure itself. */
export type FigureTarget = { atLeast: number } | { atMost: number }

/** One measured figure with its baseline of the same run. The values are in the order of the rounds. */
export interface Figure {
  name: string
  unit: string
  rounds: readonly number[]
  /** Measured in the same rounds. */
  baseline?: { name: string; rounds: readonly number[] }
  target?: FigureTarget
  note?: string
}

/** A figure as it is reported: the medians of its rounds. */
export interface Finding {
  name: string
  unit: string
  value: number
  baseline: { name: string; value: number } | null
  ratio: number | null
  target: FigureTarget | null
  /** Null if the figure has no target. */
  isMet: boolean | null
  /** The distance between the best and the worst round, as a share of the median. */
  spread: number
  rounds: readonly number[]
  baselineRounds: readonly number[]
  note: string | null
}

export function findingOf({ name, unit, rounds, baseline, target, note }: Figure): Finding {
  // Each round is compared with its own baseline, because the other load on the machine changes between rounds.
  const ratios =
    baseline === undefined ? null : rounds.map((value, at) => value / (baseline.rounds[at] ?? NaN))
  const value = median(rounds)
  const ratio = ratios === null ? null : median(ratios)
  return {
    name,
    unit,
    value,
    baseline: baseline === undefined ? null : { name: baseline.name, value: median(baseline.rounds) },
    ratio,
    target: target ?? null,
    isMet: target === undefined ? null : isWithin(target, ratio ?? value),
    spread: spreadOf(ratios ?? rounds),
    rounds,
    baselineRounds: baseline?.rounds ?? [],
    note: note ?? null,
  }
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The smallest value that at least this share of the values does not exceed; NaN if there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? NaN
}

/** The distance between the best and the worst value, as a share of the median. */
export function spreadOf(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values)
}

/** Milliseconds of each round. One more round before them warms up and does not count. */
export async function timesOf(rounds: number, work: () => Promise<unknown>): Promise<number[]> {
  await work()
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const started = performance.now()
    await work()
    times.push(performance.now() - started)
  }
  return times
}

function isWithin(target: FigureTarget, value: number): boolean {
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
}
