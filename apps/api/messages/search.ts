import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { attachmentName } from '#libs/mail/attachment-name.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { Mailbox, ParsedMail } from '#libs/mail/message.js'
import { readMailboxes } from '#libs/mail/mime/addresses.js'
import { invalid, type Problem } from '../http/problems.js'
import { comparable, missingTexts } from './comparable.js'

/*
 * Searches for messages: a message must match all terms of a query. Texts are compared as `comparable` makes them. There
 * are two languages: Mailpit's, as far as Mayfly has the data (https://mailpit.axllent.org/docs/usage/search-filters/),
 * and that of `q`, which has more filters and refuses those that it does not know.
 */

export const MAX_QUERY_CHARACTERS = 1_000
const MAX_TERMS = 20
/** Limits of Bcc, as for the other address headers. */
const MAX_BCC = 1_000
const BCC_CHARACTERS = 64 * 1024

export interface Search {
  fields: readonly { isNegated: boolean; holds: Condition }[]
  texts: readonly ({ isNegated: boolean } & Needle)[]
}

/** A text, and the texts of a message in which it is searched. */
interface Needle {
  needle: string
  textsIn: TextsIn
}

type Addresses = ReturnType<typeof addressesOf>

export interface Searchable {
  message: OpenedMessage
  inbox: Pick<Inbox, 'id' | 'address' | 'labels'>
}

type Condition = (searched: Searchable) => boolean
type TextsIn = (searched: Searchable & { addresses: () => Addresses }) => (string | null)[]
/** Makes an error from what is wrong with a term. */
type Refused = (why: string) => Problem
/** Makes a term from the value of a filter. Throws what `refused` makes. */
type Filter = (value: string, refused: Refused) => Condition | Needle

interface Language {
  /** The query parameter. */
  parameter: string
  flags: ReadonlyMap<string, Condition>
  filters: ReadonlyMap<string, Filter>
  /** Why a term that is neither a flag nor a filter is refused; null if its text is searched. */
  refusalOf: (term: string) => string | null
  /** Whether a word in quotation marks is always searched as a text, even if it looks like a filter. */
  hasQuotedTexts: boolean
  /** The texts in which words are searched. */
  textsIn: TextsIn
}

const FLAGS: Record<string, Condition> = {
  'has:attachment': ({ message: { mail } }) => mail.attachments.some(({ isInline }) => !isInline),
  'has:inline': ({ message: { mail } }) => mail.attachments.some(({ isInline }) => isInline),
}

const FILTERS: Record<string, Filter> = {
  from: inAddresses(({ from }) => [from]),
  to: inAddresses(({ to }) => to),
  cc: inAddresses(({ cc }) => cc),
  bcc: inAddresses(({ bcc }) => bcc),
  'reply-to': inAddresses(({ replyTo }) => replyTo),
  addressed: inAddresses(all),
  subject: containing(({ message: { mail } }) => [mail.subject]),
  'message-id': containing(({ message: { mail } }) => [messageIdOf(mail)]),
  larger(value, refused) {
    const bytes = bytesOf(value, refused)
    return ({ message }) => message.mail.size > bytes
  },
  smaller(value, refused) {
    const bytes = bytesOf(value, refused)
    return ({ message }) => message.mail.size < bytes
  },
  after(value, refused) {
    const timeMs = timeOf(value, refused)
    return ({ message }) => message.receivedAt.getTime() >= timeMs
  },
  before(value, refused) {
    const timeMs = timeOf(value, refused)
    return ({ message }) => message.receivedAt.getTime() <= timeMs
  },
}

export const MAILPIT: Language = {
  parameter: 'query',
  flags: new Map(Object.entries(FLAGS)),
  filters: new Map(Object.entries(FILTERS)),
  refusalOf: (term) =>
    /^(tag:|is:(read|unread|tagged)$)/i.test(term)
      ? 'is not supported: Mayfly has no tags, and does not store whether a mail was read'
      : null,
  hasQuotedTexts: false,
  textsIn: seenTexts,
}

const OWN_FLAGS: Record<string, Condition> = {
  ...FLAGS,
  'has:code': ({ message: { mail } }) => mail.codes.length > 0,
  'has:link': ({ message: { mail } }) => mail.links.length > 0,
}

const OWN_FILTERS: Record<string, Filter> = {
  ...FILTERS,
  // The address that the mail was sent to counts, whether or not its header has it.
  to: inAddresses(({ to, bcc }) => [...to, ...bcc]),
  text: containing(({ message: { mail } }) => [mail.text, mail.htmlText]),
  inbox: containing(({ inbox }) => [inbox.id, inbox.address]),
  label(value, refused) {
    const [, name, wanted] = /^([^:]+)(?::(.*))?$/s.exec(value) ?? []
    if (name === undefined) throw refused('must have a label such as run:42')
    return ({ inbox: { labels } }) =>
      wanted === undefined ? Object.hasOwn(labels, name) : labels[name] === wanted
  },
}

const KNOWN = [...Object.keys(OWN_FILTERS).map((name) => `${name}:`), ...Object.keys(OWN_FLAGS)].join(' ')

/** The language of `q`. */
export const OWN: Language = {
  parameter: 'q',
  flags: new Map(Object.entries(OWN_FLAGS)),
  filters: new Map(Object.entries(OWN_FILTERS)),
  refusalOf: (term) =>
    /^[\p{L}_][\p{L}\p{N}_-]*:/u.test(term)
      ? `is not known: use ${KNOWN}, or put it in quotation marks`
      : null,
  hasQuotedTexts: true,
  // The text part too, if there is HTML, and the targets of links.
  textsIn: (searched) => {
    const { text, links } = searched.message.mail
    return [...seenTexts(searched), text, links.map(({ href }) => href).join(' ')]
  },
}

/** Throws invalid-request if there is no term or too many, or if one is empty, invalid or not supported. */
export function parseSearch(
  query: string,
  { parameter, flags, filters, refusalOf, hasQuotedTexts, textsIn }: Language,
): Search {
  const problemOf = (detail: string) => invalid({ detail, parameter })
  const fields: Search['fields'][number][] = []
  const texts: Search['texts'][number][] = []
  const words = wordsOf(query)
  if (words.length === 0) throw problemOf(`${parameter} must have a term to search for`)
  if (words.length > MAX_TERMS) throw problemOf(`${parameter} may have at most ${MAX_TERMS} terms`)
  for (const word of words) {
    const [, sign = '', written = ''] = /^([-!]?)(.+)$/s.exec(hasQuotedTexts ? word : unquoted(word)) ?? []
    const isNegated = sign !== ''
    const term = unquoted(written)
    const refused = (why: string) => problemOf(`${JSON.stringify(term.slice(0, 100))} in ${parameter} ${why}`)
    const isText = written.startsWith('"')
    const [, name = '', value = ''] = /^([a-z-]+):(.*)$/is.exec(term) ?? []
    const flag = isText ? undefined : flags.get(term.toLowerCase().replace(/s$/, ''))
    const filter = isText ? undefined : filters.get(name.toLowerCase())
    const refusal = isText || flag !== undefined || filter !== undefined ? null : refusalOf(term)
    if (refusal !== null) throw refused(refusal)
    const made = flag ?? filter?.(value, refused) ?? { needle: needleOf(term, refused), textsIn }
    if (typeof made === 'function') fields.push({ isNegated, holds: made })
    else texts.push({ isNegated, ...made })
  }
  return { fields, texts }
}

/** Whether a message matches all terms. */
export async function matchesSearch({ fields, texts }: Search, searchable: Searchable): Promise<boolean> {
  if (fields.some(({ isNegated, holds }) => holds(searchable) === isNegated)) return false
  let read: Addresses | null = null
  const addresses = () => (read ??= addressesOf(searchable.message.mail))
  // Each text is prepared once for all terms, in pieces.
  for (const [textsIn, terms] of Map.groupBy(texts, (term) => term.textsIn)) {
    const needles = terms.map(({ needle }) => needle)
    const missing = await missingTexts(needles, textsIn({ ...searchable, addresses }), withoutMarks)
    if (terms.some(({ isNegated, needle }) => missing.has(needle) !== isNegated)) return false
  }
  return true
}

/** The words of a query, with their quotation marks. White space between these does not separate words. */
function wordsOf(query: string): string[] {
  const words = query.match(/(?:"[^"]*(?:"|$)|[^\s"])+/g) ?? []
  return words.filter((word) => unquoted(word) !== '')
}

function unquoted(word: string): string {
  return word.replaceAll('"', '').trim()
}

function containing(textsIn: TextsIn): Filter {
  return (value, refused) => ({ needle: needleOf(value, refused), textsIn })
}

function inAddresses(wanted: (addresses: Addresses) => Addresses['to']): Filter {
  return containing(({ addresses }) => [addressText(wanted(addresses()))])
}

function needleOf(value: string, refused: Refused): string {
  const needle = withoutMarks(value).trim()
  if (needle === '') throw refused('has no text to search for')
  return needle
}

const SIZE = /^(\d{1,12}(?:\.\d{1,6})?) ?(kb?|mb?)?$/i
const UNIT_BYTES: Readonly<Record<string, number>> = { k: 1024, m: 1024 * 1024 }

function bytesOf(value: string, refused: Refused): number {
  const [, number, unit = ''] = SIZE.exec(value.trim()) ?? []
  if (number === undefined) throw refused('must have a size such as 500, 20kb or 1.5M')
  return Number(number) * (UNIT_BYTES[unit.charAt(0).toLowerCase()] ?? 1)
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(Z|[+-]\d\d:\d\d)?)?$/i

/** Milliseconds since 1970. A time without an offset is in UTC. */
function timeOf(value: string, refused: Refused): number {
  const [, day, time = '00:00', offset = 'Z'] = TIME.exec(value.trim()) ?? []
  const timeMs = day === undefined ? NaN : Date.parse(`${day}T${time}${offset.toUpperCase()}`)
  // JavaScript reads the 30th of February as the 2nd of March.
  const isDay = new Date(`${day}T00:00Z`).getUTCDate() === Number(day?.slice(8))
  if (Number.isNaN(timeMs) || !isDay) {
    throw refused('must have a time such as 2026-11-21 or 2026-11-21T10:00:00Z')
  }
  return timeMs
}

/** What a reader sees of a message: addresses, subject, text and the names of attachments. */
function seenTexts({ message: { mail }, addresses }: Parameters<TextsIn>[0]): string[] {
  const texts = [
    addressText(all(addresses())),
    mail.subject ?? '',
    headerOf(mail, 'Return-Path'),
    mail.htmlText ?? mail.text ?? '',
    ...mail.attachments.map(({ filename, contentType }) => attachmentName(filename, contentType)),
  ]
  return [texts.join(' ')]
}

function all({ from, to, cc, bcc, replyTo }: Addresses): Addresses['to'] {
  return [from, ...to, ...cc, ...bcc, ...replyTo]
}

function addressText(addresses: Addresses['to']): string {
  return addresses.map(({ Name, Address }) => `${Name} ${Address}`).join(' ')
}

/** Mailpit ignores these marks both in what is searched and in what it is searched for. */
function withoutMarks(text: string): string {
  return comparable(text.replaceAll(/[<>",;()]+/g, ' '))
}

/** The first value of a header; the empty text without one. */
export function headerOf({ headers }: ParsedMail, name: string): string {
  const wanted = name.toLowerCase()
  return headers.find((header) => header.name.toLowerCase() === wanted)?.value ?? ''
}

export function messageIdOf(mail: ParsedMail): string {
  return headerOf(mail, 'Message-ID').replaceAll(/^[\s<]+|[\s>]+$/g, '')
}

/** The addresses of the header. As in Mailpit, a recipient of the envelope that it does not name is added to Bcc. */
export function addressesOf(mail: ParsedMail) {
  const { sender, recipient, to, cc } = mail
  const [from = { name: null, address: sender }] = mail.from
  const bcc = readMailboxes(headerOf(mail, 'Bcc').slice(0, BCC_CHARACTERS), MAX_BCC)
  const isNamed = [...to, ...cc, ...bcc].some(
    ({ address }) => address.toLowerCase() === recipient.toLowerCase(),
  )
  return {
    from: addressJson(from),
    to: to.map(addressJson),
    cc: cc.map(addressJson),
    bcc: (isNamed ? bcc : [...bcc, { name: null, address: recipient }]).map(addressJson),
    replyTo: mail.replyTo.map(addressJson),
  }
}

function addressJson({ name, address }: Mailbox) {
  return { Name: name ?? '', Address: address }
}
