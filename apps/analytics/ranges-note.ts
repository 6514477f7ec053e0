import { MAX_NOTE_BYTES } from '#libs/ports/event-log/event-log.js'
import type { UsageRange } from '#libs/ports/usage/usage-store.js'

/*
 * What a batch in doubt is known by, as the note of a group's place: which ranges of the topic it holds, as
 * `<partition>:<first>-<end>`, parted by blanks.
 */

/** A partition of 6 digits and offsets of 15, with the blank behind. */
const MAX_BYTES = 6 + 1 + 15 + 1 + 15 + 1
/** As many ranges, of any offsets, as a note has room for. */
export const MAX_RANGES = Math.floor(MAX_NOTE_BYTES / MAX_BYTES)

export function writeRanges(ranges: readonly UsageRange[]): string {
  return ranges.map(({ partition, first, end }) => `${partition}:${first}-${end}`).join(' ')
}

/** None if the note is empty, or not one of these. */
export function readRanges(note: string): UsageRange[] {
  const found = note.split(' ').map((text) => /^(\d{1,6}):(\d{1,15})-(\d{1,15})$/.exec(text))
  if (found.includes(null)) return []
  return found.map((match) => {
    const [partition = 0, first = 0, end = 0] = match?.slice(1).map(Number) ?? []
    return { partition, first, end }
  })
}
