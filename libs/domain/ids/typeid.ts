import { TypeID } from 'typeid-js'

/**
 * Ids are TypeIDs: a prefix, an underscore and a UUID as 26 characters of Crockford's base32
 * (https://github.com/jetify-com/typeid, version 0.3). UUIDv7 ids sort by the time they were made.
 */
export type Id<Prefix extends string> = string & { readonly __prefix: Prefix }

export type InboxId = Id<'inb'>
export type MessageId = Id<'msg'>
export type AccountId = Id<'acc'>
export type KeyId = Id<'key'>
export type EventId = Id<'evt'>
export type WebhookId = Id<'whk'>
export type DeliveryId = Id<'dlv'>
export type ReplayId = Id<'rpl'>
export type ConsoleSessionId = Id<'ses'>
export type DomainId = Id<'dom'>
export type MemberId = Id<'mem'>
export type InvitationId = Id<'inv'>
export type LogId = Id<'log'>

const SUFFIX = '_[0-7][0-9a-hjkmnp-tv-z]{25}$'
const AFTER_PREFIX = new RegExp(`^${SUFFIX}`)

/** The source of a regular expression for ids with one of these prefixes. */
export function idPattern(...prefixes: readonly [string, ...string[]]): string {
  const [prefix] = prefixes.length === 1 ? prefixes : [`(${prefixes.join('|')})`]
  return `^${prefix}${SUFFIX}`
}

export function isId<Prefix extends string>(prefix: Prefix, text: string): text is Id<Prefix> {
  return text.startsWith(prefix) && AFTER_PREFIX.test(text.slice(prefix.length))
}

/** Makes an id from sixteen bytes. Processes that have the same bytes make the same id. */
export function idFromBytes<Prefix extends string>(prefix: Prefix, bytes: Uint8Array): Id<Prefix> {
  return brand(prefix, TypeID.fromUUIDBytes(prefix, bytes).toString())
}

/** The sixteen bytes of an id. */
export function bytesOf(id: Id<string>): Uint8Array {
  return TypeID.fromString(id).toUUIDBytes()
}

export function brand<Prefix extends string>(prefix: Prefix, text: string): Id<Prefix> {
  if (!isId(prefix, text)) throw new TypeError(`not a TypeID with prefix "${prefix}": ${text}`)
  return text
}
