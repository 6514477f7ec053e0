import type { ParsedMail } from '#libs/mail/message.js'
import type { MatchFilters } from './list-messages.dto.js'

/** Whether a mail is as the filters ask: contains, case-insensitive; all must hold. */
export function matches(mail: ParsedMail, filters: MatchFilters): boolean {
  const { subject, sender, recipient, text, has_code: hasCode, has_link: hasLink } = filters
  return (
    contains(subject, mail.subject) &&
    contains(sender, mail.sender, ...mail.from.flatMap(({ name, address }) => [name, address])) &&
    contains(recipient, mail.recipient) &&
    (hasCode === undefined || hasCode === mail.codes.length > 0) &&
    (hasLink === undefined || hasLink === mail.links.length > 0) &&
    contains(text, mail.text, mail.htmlText)
  )
}

function contains(wanted: string | undefined, ...texts: (string | null)[]): boolean {
  if (wanted === undefined) return true
  const needle = wanted.toLowerCase()
  return texts.some((text) => text?.toLowerCase().includes(needle) === true)
}
