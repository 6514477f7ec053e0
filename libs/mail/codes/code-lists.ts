import type { Candidate } from './code-candidates.js'

const ordinal = String.raw`\d{1,2}[.):]`
// Cells of one row are no list.
const betweenListed = new RegExp(String.raw`^(?=.{0,12}[\n,•·|])[\s,•*·–|-]*(?:${ordinal})?[\s•*·]+$`, 's')
const ordinalAlone = new RegExp(String.raw`^\s*${ordinal}\s+$`)

/** Farther apart, codes are of different lists. */
const farthest = 12

/** Whether a candidate of a text is the next of a list of codes: alike, and with nothing but an ordinal between. */
export function isListedBehind(
  text: string,
  previous: Candidate,
  { start, form, value }: Candidate,
): boolean {
  if (form !== previous.form || value.length !== previous.value.length) return false
  const gap = start - previous.end
  return gap > 0 && gap <= farthest && betweenListed.test(text.slice(previous.end, start))
}

/** Whether all that stands on a line before a number is "3." or the like. */
export function isOrdinal(text: string): boolean {
  return ordinalAlone.test(text)
}
