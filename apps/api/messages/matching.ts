import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { Mailbox, ParsedMail } from '#libs/mail/message.js'
import { readTime } from '../http/rules.js'
import { comparable, missingTexts } from './comparable.js'
import { HEADER, type MatchFilters } from './message-filters.js'

type Matchable = Pick<OpenedMessage, 'mail' | 'receivedAt'>

/** The texts of a message that a filter searches. */
const TEXTS = {
  subject: ({ subject }) => [subject],
  sender: ({ sender, from }) => [sender, ...textsOf(from)],
  recipient: ({ recipient }) => [recipient],
  detail: ({ recipientDetail }) => [recipientDetail],
  to: ({ to }) => textsOf(to),
  text: ({ text, htmlText }) => [text, htmlText],
} as const satisfies Record<string, (mail: ParsedMail) => (string | null)[]>

type TextFilter = keyof typeof TEXTS
const FIELD_FILTERS = ['subject', 'sender', 'recipient', 'detail', 'to'] as const satisfies TextFilter[]

/** Matches messages against the filters of a query, which are prepared once. */
export class Matcher {
  private readonly needles = new Map<TextFilter, string>()
  /** The wanted texts of headers, and what the query has for them, by the lower-case names of the headers. */
  private readonly headers = new Map<string, Map<string, string>>()

  constructor(private readonly filters: MatchFilters) {
    for (const name of [...FIELD_FILTERS, 'text'] as const) {
      const wanted = filters[name]
      if (wanted !== undefined) this.needles.set(name, comparable(wanted))
    }
    for (const each of filters.header ?? []) {
      const [, name = '', text = ''] = HEADER.exec(each) ?? []
      const wanted = this.headers.get(name.toLowerCase()) ?? new Map<string, string>()
      this.headers.set(name.toLowerCase(), wanted.set(comparable(text.trim()), each))
    }
  }

  /** Whether a message matches all filters. */
  async matches(message: Matchable): Promise<boolean> {
    return (await this.findMismatches(message).next()).done === true
  }

  /** A sentence for each filter that a message does not match. */
  async mismatches(message: Matchable): Promise<string[]> {
    const found: string[] = []
    for await (const each of this.findMismatches(message)) found.push(each)
    return found
  }

  private async *findMismatches({ mail, receivedAt }: Matchable): AsyncGenerator<string, void> {
    const { filters } = this
    const { since, until, has_code: hasCode, has_link: hasLink } = filters
    if (isBefore(receivedAt, since)) yield `received_at is before ${since}`
    if (until !== undefined && !isBefore(receivedAt, until)) yield `received_at is not before ${until}`
    for (const name of FIELD_FILTERS) yield* this.findMissingText(mail, name)
    for (const [name, wanted] of this.headers) {
      const named = mail.headers.filter((header) => header.name.toLowerCase() === name)
      const values = named.map(({ value }) => value)
      for (const each of await missingTexts(wanted.keys(), values)) {
        yield `there is no header ${JSON.stringify(wanted.get(each))}`
      }
    }
    if (hasCode !== undefined && hasCode !== mail.codes.length > 0) yield has('code', !hasCode)
    if (hasLink !== undefined && hasLink !== mail.links.length > 0) yield has('link', !hasLink)
    // Searched last, since it may be long.
    yield* this.findMissingText(mail, 'text')
  }

  private async *findMissingText(mail: ParsedMail, name: TextFilter): AsyncGenerator<string, void> {
    const needle = this.needles.get(name)
    if (needle === undefined) return
    const missing = await missingTexts([needle], TEXTS[name](mail))
    if (missing.size > 0) yield `${name} does not contain ${JSON.stringify(this.filters[name])}`
  }
}

/** Whether a message was received in the time that the filters name, which is known before it is opened. */
export function isReceivedInTime(receivedAt: Date, { since, until }: MatchFilters): boolean {
  return !isBefore(receivedAt, since) && (until === undefined || isBefore(receivedAt, until))
}

function isBefore(time: Date, limit: string | undefined): boolean {
  return limit !== undefined && time < readTime(limit)
}

function textsOf(mailboxes: readonly Mailbox[]): (string | null)[] {
  return mailboxes.flatMap(({ name, address }) => [name, address])
}

function has(what: 'code' | 'link', isPresent: boolean): string {
  return isPresent ? `there is a ${what}` : `there is no ${what}`
}
