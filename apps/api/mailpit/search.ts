import { attachmentName } from '#libs/mail/attachment-name.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { invalid, type Problem } from '../http/problems.js'
import { comparable, missingTexts } from '../messages/comparable.js'
import { addressesOf, headerOf, messageIdOf } from './shapes.js'

/*
 * Mailpit's search language (https://mailpit.axllent.org/docs/usage/search-filters/), as far as Mayfly has the data: a
 * message must match all terms of a query. Texts are compared as `comparable` makes them.
 */

export const MAX_QUERY_CHARACTERS = 1_000
const MAX_TERMS = 20

export interface Search {
  /** Terms that need only the fields of a message. */
  fields: readonly { isNegated: boolean; holds: Condition }[]
  /** Terms that are searched in the whole message. */
  texts: readonly { isNegated: boolean; needle: string }[]
}

type Addresses = ReturnType<typeof addressesOf>
/** The addresses of a message are read once for all conditions. */
type Condition = (message: OpenedMessage, addresses: Addresses) => boolean

/** The text of each field, by its name in a query. */
const TEXTS: Readonly<Record<string, (mail: ParsedMail, addresses: Addresses) => string>> = {
  from: (_, { from }) => addressText([from]),
  to: (_, { to }) => addressText(to),
  cc: (_, { cc }) => addressText(cc),
  bcc: (_, { bcc }) => addressText(bcc),
  'reply-to': (_, { replyTo }) => addressText(replyTo),
  addressed: (_, addresses) => allText(addresses),
  subject: ({ subject }) => subject ?? '',
  'message-id': messageIdOf,
}

const FLAGS: Readonly<Record<string, Condition>> = {
  'has:attachment': ({ mail }) => mail.attachments.some(({ isInline }) => !isInline),
  'has:inline': ({ mail }) => mail.attachments.some(({ isInline }) => isInline),
}

const FILTER = /^(from|to|cc|bcc|reply-to|addressed|subject|message-id|after|before|larger|smaller):(.*)$/is
/** Parts of Mailpit's language about data that Mayfly does not have. */
const UNSUPPORTED = /^(tag:|is:(read|unread|tagged)$)/i

/** Throws invalid-request if there is no term or too many, or if one is empty, invalid or not supported. */
export function parseSearch(query: string): Search {
  const fields: Search['fields'][number][] = []
  const texts: Search['texts'][number][] = []
  const words = wordsOf(query)
  if (words.length === 0) throw problemOf('query must have a term to search for')
  if (words.length > MAX_TERMS) throw problemOf(`query may have at most ${MAX_TERMS} terms`)
  for (const word of words) {
    const isNegated = /^[-!]./s.test(word)
    const term = isNegated ? word.slice(1) : word
    if (UNSUPPORTED.test(term)) {
      throw refused(term, 'is not supported: Mayfly has no tags, and does not store whether a mail was read')
    }
    const flag = FLAGS[term.toLowerCase().replace(/s$/, '')]
    const [, name, value] = FILTER.exec(term) ?? []
    if (flag !== undefined) fields.push({ isNegated, holds: flag })
    else if (name !== undefined && value !== undefined) {
      fields.push({ isNegated, holds: filterOf(term, name.toLowerCase(), value) })
    } else texts.push({ isNegated, needle: needleOf(term, term) })
  }
  return { fields, texts }
}

/** Whether a message matches all terms. */
export async function matchesSearch({ fields, texts }: Search, message: OpenedMessage): Promise<boolean> {
  const addresses = addressesOf(message.mail)
  if (fields.some(({ isNegated, holds }) => holds(message, addresses) === isNegated)) return false
  if (texts.length === 0) return true
  const needles = texts.map(({ needle }) => needle)
  const missing = await missingTexts(needles, [textOf(message.mail, addresses)], withoutMarks)
  return texts.every(({ isNegated, needle }) => missing.has(needle) === isNegated)
}

/** The words of a query. Spaces between quotation marks do not separate words. */
function wordsOf(query: string): string[] {
  const words = query.match(/(?:"[^"]*(?:"|$)|[^ "])+/g) ?? []
  return words.map((word) => word.replaceAll('"', '').trim()).filter((word) => word !== '')
}

function filterOf(term: string, name: string, value: string): Condition {
  const textIn = TEXTS[name]
  if (textIn !== undefined) {
    const needle = needleOf(term, value)
    return ({ mail }, addresses) => cleaned(textIn(mail, addresses)).includes(needle)
  }
  if (name === 'larger' || name === 'smaller') {
    const bytes = bytesOf(term, value)
    return ({ mail }) => (name === 'larger' ? mail.size > bytes : mail.size < bytes)
  }
  const timeMs = timeOf(term, value)
  return ({ receivedAt }) =>
    name === 'after' ? receivedAt.getTime() >= timeMs : receivedAt.getTime() <= timeMs
}

function needleOf(term: string, value: string): string {
  const needle = cleaned(value)
  if (needle === '') throw refused(term, 'has no text to search for')
  return needle
}

const SIZE = /^(\d{1,12}(?:\.\d{1,6})?) ?(kb?|mb?)?$/i
const UNIT_BYTES: Readonly<Record<string, number>> = { k: 1024, m: 1024 * 1024 }

function bytesOf(term: string, value: string): number {
  const [, number, unit = ''] = SIZE.exec(value.trim()) ?? []
  if (number === undefined) throw refused(term, 'must have a size such as 500, 20kb or 1.5M')
  return Number(number) * (UNIT_BYTES[unit.charAt(0).toLowerCase()] ?? 1)
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(Z|[+-]\d\d:\d\d)?)?$/i

/** Milliseconds since 1970. A time without an offset is in UTC. */
function timeOf(term: string, value: string): number {
  const [, day, time = '00:00', offset = 'Z'] = TIME.exec(value.trim()) ?? []
  const timeMs = day === undefined ? NaN : Date.parse(`${day}T${time}${offset.toUpperCase()}`)
  if (Number.isNaN(timeMs)) {
    throw refused(term, 'must have a time such as 2026-11-21 or 2026-11-21T10:00:00Z')
  }
  return timeMs
}

/** What a reader sees of a message: addresses, subject, text and the names of attachments. */
function textOf(mail: ParsedMail, addresses: Addresses): string {
  return [
    allText(addresses),
    mail.subject ?? '',
    headerOf(mail, 'Return-Path'),
    mail.htmlText ?? mail.text ?? '',
    ...mail.attachments.map(({ filename, contentType }) => attachmentName(filename, contentType)),
  ].join(' ')
}

function allText({ from, to, cc, bcc, replyTo }: Addresses): string {
  return addressText([from, ...to, ...cc, ...bcc, ...replyTo])
}

function addressText(addresses: Addresses['to']): string {
  return addresses.map(({ Name, Address }) => `${Name} ${Address}`).join(' ')
}

function cleaned(text: string): string {
  return withoutMarks(text).trim()
}

/** Mailpit ignores these marks both in what is searched and in what it is searched for. */
function withoutMarks(text: string): string {
  return comparable(text.replaceAll(/[<>",;()]+/g, ' '))
}

function refused(term: string, why: string): Problem {
  return problemOf(`${JSON.stringify(term.slice(0, 100))} in query ${why}`)
}

function problemOf(detail: string): Problem {
  return invalid({ detail, parameter: 'query' })
}
