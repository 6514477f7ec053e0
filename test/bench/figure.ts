/** What is to be reached: a bound on the ratio to the yardstick where there is one, else on the figure itself. */
export type Reach = { atLeast: number } | { atMost: number }

/** One measured figure, beside its yardstick of the same run. Each round's values stand in order. */
export interface Figure {
  name: string
  unit: string
  rounds: readonly number[]
  /** Measured in the same rounds. */
  yardstick?: { name: string; rounds: readonly number[] }
  reach?: Reach
  note?: string
}

/** A figure as it is told: the medians of its rounds. */
export interface Finding {
  name: string
  unit: string
  value: number
  yardstick: { name: string; value: number } | null
  ratio: number | null
  reach: Reach | null
  /** Null if nothing is to be reached. */
  isReached: boolean | null
  /** The distance between the best and the worst round, as a share of the median. */
  spread: number
  rounds: readonly number[]
  yardstickRounds: readonly number[]
  note: string | null
}

export function findingOf({ name, unit, rounds, yardstick, reach, note }: Figure): Finding {
  // Each round is held against its own yardstick, since what else the machine does changes between rounds.
  const ratios =
    yardstick === undefined ? null : rounds.map((value, at) => value / (yardstick.rounds[at] ?? NaN))
  const value = median(rounds)
  const ratio = ratios === null ? null : median(ratios)
  return {
    name,
    unit,
    value,
    yardstick: yardstick === undefined ? null : { name: yardstick.name, value: median(yardstick.rounds) },
    ratio,
    reach: reach ?? null,
    isReached: reach === undefined ? null : isWithin(reach, ratio ?? value),
    spread: spreadOf(ratios ?? rounds),
    rounds,
    yardstickRounds: yardstick?.rounds ?? [],
    note: note ?? null,
  }
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The smallest value that at least this share of them does not exceed; NaN for none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? NaN
}

/** The distance between the best and the worst value, as a share of the median. */
export function spreadOf(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values)
}

function isWithin(reach: Reach, value: number): boolean {
  return 'atLeast' in reach ? value >= reach.atLeast : value <= reach.atMost
}
