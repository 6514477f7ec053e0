const MOST_MS = 86_400_000
/** The three forms of a date that a recipient must take (RFC 9110, section 5.6.7). */
const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const RFC_850_DATE = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME_DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * For how long Retry-After asks to wait: seconds or a date (RFC 9110, section 10.2.3), as milliseconds from 0 to 24 h.
 * Null where it is not there or says neither.
 */
export function retryAfterMs(value: string | undefined, now: Date): number | null {
  const text = value?.trim() ?? ''
  if (/^\d+$/.test(text)) return bounded(Number(text) * 1_000)
  const isDate = IMF_FIXDATE.test(text) || RFC_850_DATE.test(text)
  const atMs = isDate ? Date.parse(text) : ASCTIME_DATE.test(text) ? Date.parse(`${text} GMT`) : NaN
  return Number.isNaN(atMs) ? null : bounded(atMs - now.getTime())
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), MOST_MS)
}
