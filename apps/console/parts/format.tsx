import { useEffect, useState } from 'preact/hooks'
import { text } from '../text.js'
import { visibleLine, withoutControls } from './visible-text.js'

/** The current time in milliseconds, which renders the component again at an interval. */
function useNow(intervalMs: number): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), intervalMs)
    return () => clearInterval(timer)
  }, [intervalMs])
  return now
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** A duration by its two largest units: `1 h 5 min`. */
export function formatDuration(ms: number): string {
  const index = UNITS.findIndex(([, length]) => ms >= length)
  if (index < 0) return '0 s'
  let left = ms
  const parts = UNITS.slice(index, index + 2).map(([unit, length]) => {
    const count = Math.floor(left / length)
    left -= count * length
    return count === 0 ? '' : `${count} ${unit}`
  })
  return parts.filter(Boolean).join(' ')
}

/** A latency, in a unit that keeps it short: `12.3 ms`, `1.2 s`, `114 s`. */
export function formatLatency(ms: number): string {
  if (ms < 1_000) return `${ms.toFixed(1)} ms`
  return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB']

export function formatBytes(bytes: number): string {
  const unit = SIZES.findLastIndex((_, power) => bytes >= 1_000 ** power)
  return unit <= 0 ? `${bytes} B` : `${(bytes / 1_000 ** unit).toFixed(1)} ${SIZES[unit]}`
}

export const formatCount = (count: number) => count.toLocaleString('en')

/** The subject of a mail, which may have none or an empty one. */
export const formatSubject = (subject: string | null) => visibleLine(subject?.trim() || text.mail.noSubject)

const DATE_TIME = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })

/**
 * A time in the reader's time zone. With `isRelative`, how long ago, and the time as a tooltip; with `isShort`, only the
 * largest unit of it.
 */
export function Time({
  value,
  isRelative = false,
  isShort = false,
}: {
  value: string | null
  isRelative?: boolean
  isShort?: boolean
}) {
  const isAge = isRelative || isShort
  const now = useNow(isAge ? 10_000 : 3_600_000)
  if (value === null) return <span>{text.never}</span>
  const date = new Date(value)
  const shown = DATE_TIME.format(date)
  return (
    <time dateTime={value} title={`${shown} (${value})`}>
      {isAge ? formatAge(now - date.getTime(), isShort) : shown}
    </time>
  )
}

function formatAge(ms: number, isShort: boolean): string {
  if (ms < 5_000) return isShort ? text.now : text.justNow
  const age = formatDuration(ms)
  return isShort ? age.split(' ').slice(0, 2).join(' ') : text.ago(age)
}

/** How long until the end of an inbox, which is updated each second. */
export function TimeLeft({ expiresAt }: { expiresAt: string }) {
  const now = useNow(1_000)
  return <span>{text.inboxes.endsIn(formatDuration(Math.max(Date.parse(expiresAt) - now, 0)))}</span>
}

export function Labels({ labels }: { labels: Readonly<Record<string, string>> }) {
  return (
    <span class="labels">
      {Object.entries(labels).map(([name, value]) => (
        <span class="label" key={name}>
          {name}:{value}
        </span>
      ))}
    </span>
  )
}

/** Labels in a text field: `run:42, team:web`. Throws an error in words. */
export function parseLabels(written: string): Record<string, string> {
  const pairs = written.split(',').map((pair) => pair.trim())
  return Object.fromEntries(
    pairs.filter(Boolean).map((pair) => {
      const colon = pair.indexOf(':')
      if (colon < 1) throw new Error(text.labelsForm(pair))
      return [pair.slice(0, colon), pair.slice(colon + 1)]
    }),
  )
}

export function writeLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map((pair) => pair.join(':'))
    .join(', ')
}

/** Saves bytes as a file of the user. */
export function saveFile(name: string, parts: BlobPart[], type: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = withoutControls(name)
  link.click()
  URL.revokeObjectURL(url)
}
