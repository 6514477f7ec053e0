import type { ParsedMail } from '#libs/mail/message.js'
import type { MatchFilters } from './list-messages.dto.js'

/** Whether a mail is as the filters ask: contains, case-insensitive; all must hold. */
export function matches(mail: ParsedMail, filters: MatchFilters): boolean {
  return mismatchesIn(mail, filters).next().done === true
}

/** Each filter that a mail is not as, in words. */
export function mismatches(mail: ParsedMail, filters: MatchFilters): string[] {
  return [...mismatchesIn(mail, filters)]
}

function* mismatchesIn(mail: ParsedMail, filters: MatchFilters): Generator<string, void> {
  const { subject, sender, recipient, text, has_code: hasCode, has_link: hasLink } = filters
  const senders = mail.from.flatMap(({ name, address }) => [name, address])
  if (!contains(subject, mail.subject)) yield lacking('subject', subject)
  if (!contains(sender, mail.sender, ...senders)) yield lacking('sender', sender)
  if (!contains(recipient, mail.recipient)) yield lacking('recipient', recipient)
  if (hasCode !== undefined && hasCode !== mail.codes.length > 0) yield has('code', !hasCode)
  if (hasLink !== undefined && hasLink !== mail.links.length > 0) yield has('link', !hasLink)
  if (!contains(text, mail.text, mail.htmlText)) yield lacking('text', text)
}

function contains(wanted: string | undefined, ...texts: (string | null)[]): boolean {
  if (wanted === undefined) return true
  const needle = wanted.toLowerCase()
  return texts.some((text) => text?.toLowerCase().includes(needle) === true)
}

function lacking(name: string, wanted: string | undefined): string {
  return `${name} does not contain ${JSON.stringify(wanted)}`
}

function has(what: 'code' | 'link', isThere: boolean): string {
  return isThere ? `there is a ${what}` : `there is no ${what}`
}
