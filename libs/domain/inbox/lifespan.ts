/** How long an inbox lives, in the unit that its maker chose. */
export interface Lifespan {
  /** A whole number, without leading zeros, and one of m h d w: `30m`, `24h`, `7d`, `2w`. */
  text: string
  ms: number
}

/** The units that a duration may have. */
export const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const SHORTEST_MS = UNIT_MS.m
const DEFAULT: Lifespan = { text: '24h', ms: 24 * UNIT_MS.h }

/** Null if the text is no lifespan, or one under a minute. One of very many digits has no end: ms is Infinity. */
export function parseLifespan(text: string): Lifespan | null {
  const match = /^(\d+)([mhdw])$/.exec(text)
  if (match === null) return null
  const [, count = '', unit] = match
  if (unit !== 'm' && unit !== 'h' && unit !== 'd' && unit !== 'w') return null
  const ms = Number(count) * UNIT_MS[unit]
  return ms < SHORTEST_MS ? null : { text: `${count.replace(/^0+/, '')}${unit}`, ms }
}

/** A day, or the retention where that is shorter. */
export function defaultLifespan(retention: Lifespan): Lifespan {
  return retention.ms < DEFAULT.ms ? retention : DEFAULT
}
