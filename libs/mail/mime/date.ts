import { endOfComment } from './parameters.js'

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/** Hours east of UTC (RFC 5322, section 4.3). Other names have no known offset and count as UTC. */
const NAMED_ZONES = new Map(
  Object.entries({ edt: -4, est: -5, cdt: -5, cst: -6, mdt: -6, mst: -7, pdt: -7, pst: -8 }),
)

const MAIL_DATE =
  /^(?:[a-z]{2,9}\.?,?\s+)?(\d{1,2})[\s-]+([a-z]{3})[a-z]{0,6}\.?,?[\s-]+(\d{2,4})\s+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?\s*(?:(?:gmt|utc)?([+-]\d{2}):?(\d{2})|([a-z]{1,5}))?$/

/** The format of C's `ctime`, in UTC if it names no zone: `Sat Nov 21 10:00:00 2026`. */
const C_DATE = /^[a-z]{3},? ([a-z]{3}) +(\d{1,2}) (\d{2}:\d{2}:\d{2})(?: ([a-z]{1,5}|[+-]\d{4}))? (\d{4})$/

const ISO_DATE = /^\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:z|[+-]\d{2}:?\d{2})$/

/**
 * The value of a Date header as RFC 3339 in UTC with milliseconds, or null if it is not a valid time. Accepts RFC 5322
 * with its obsolete forms, ISO 8601 with a zone, and the format of `ctime`. `new Date` is not used, because it accepts
 * almost any text and uses the time zone of the machine.
 */
export function readDate(value: string): string | null {
  const text = withoutComments(value).toLowerCase()
  if (ISO_DATE.test(text)) return fromEpoch(Date.parse(text.replace(' ', 't').toUpperCase()))

  const match = MAIL_DATE.exec(text.replace(C_DATE, '$2 $1 $5 $3 $4').trim())
  if (match === null) return null
  const [, day, monthName = '', yearText = '', hour, minute, second = '0', zoneHour, zoneMinute, zoneName] =
    match
  const month = MONTHS.indexOf(monthName)
  const utcMs = Date.UTC(
    fullYear(yearText),
    month,
    Number(day),
    Number(hour),
    Number(minute),
    // Unix time has no leap seconds.
    Math.min(Number(second), 59),
  )
  if (month < 0 || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return null
  if (new Date(utcMs).getUTCDate() !== Number(day)) return null

  const sign = zoneHour?.startsWith('-') === true ? -1 : 1
  const offsetMinutes =
    zoneHour === undefined
      ? (NAMED_ZONES.get(zoneName ?? '') ?? 0) * 60
      : sign * (Math.abs(Number(zoneHour)) * 60 + Number(zoneMinute))
  return fromEpoch(utcMs - offsetMinutes * 60_000)
}

/** RFC 5322, section 4.3: two digits up to 49 count from 2000, other short years from 1900. */
function fullYear(text: string): number {
  const year = Number(text)
  if (text.length === 2) return year < 50 ? 2000 + year : 1900 + year
  return text.length === 3 ? 1900 + year : year
}

function withoutComments(value: string): string {
  if (!value.includes('(')) return value.trim()
  let text = ''
  for (let at = 0; at < value.length; at++) {
    const character = value.charAt(at)
    if (character === '(') at = endOfComment(value, at) - 1
    else if (character !== ')') text += character
  }
  return text.replace(/\s+,/g, ',').trim()
}

function fromEpoch(milliseconds: number): string | null {
  return Number.isNaN(milliseconds) ? null : new Date(milliseconds).toISOString()
}
