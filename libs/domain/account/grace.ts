export const GRACE_UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** How long a former secret goes on working: `0`, or a whole number and one of s m h d w, in milliseconds; else null. */
export function parseGrace(text: string): number | null {
  if (text === '0') return 0
  const [, count, unit] = /^(\d+)([smhdw])$/.exec(text) ?? []
  return unit === undefined ? null : Number(count) * GRACE_UNIT_MS[unit as keyof typeof GRACE_UNIT_MS]
}
