import type { Connection } from './connection.js'
import { MayflyError } from './errors.js'
import type { CallOptions, Schema, Schemas } from './options.js'

function Properties(this: object, data: object): void {
  Object.assign(this, data)
}

/**
 * A class whose objects have the properties of the data.
 * @internal
 */
export function withProperties<Data extends object>(): new (data: Data) => Data {
  return Properties as unknown as new (data: Data) => Data
}

/**
 * How an object that belongs to an inbox sends requests.
 * @internal
 */
export interface Access {
  connection: Connection
  password: string | undefined
}

// The package has these names instead of all properties.
/* eslint-disable @typescript-eslint/no-empty-object-type */
interface AttachmentProperties extends Schema<'Attachment'> {}
interface MessageProperties extends Omit<Schema<'Message'>, 'attachments'> {}
/* eslint-enable @typescript-eslint/no-empty-object-type */

/** An attachment of a message: its description, and its content on request. */
export class Attachment extends withProperties<AttachmentProperties>() {
  readonly #access: Access
  readonly #path: string

  /** @internal */
  constructor(access: Access, messagePath: string, data: Schemas['Attachment']) {
    super(data)
    this.#access = access
    this.#path = `${messagePath}/attachments/${data.index}`
  }

  /** The decoded content. */
  bytes(options: CallOptions = {}): Promise<Uint8Array> {
    return this.#access.connection.bytes(this.#path, { password: this.#access.password, ...options })
  }
}

/** A message of an inbox. Its properties are those of the API. */
export class Message extends withProperties<MessageProperties>() {
  readonly attachments: readonly Attachment[]
  /** The position just after this message, for `since`, if a wait returned it; otherwise null. */
  readonly cursor: string | null
  readonly #access: Access
  readonly #path: string

  /** @internal */
  constructor(access: Access, data: Schemas['Message'], cursor: string | null = null) {
    super(data)
    this.#access = access
    this.#path = `/v1/inboxes/${data.inbox_id}/messages/${data.id}`
    this.attachments = data.attachments.map((each) => new Attachment(access, this.#path, each))
    this.cursor = cursor
  }

  /** The source, byte for byte as it was received. */
  raw(options: CallOptions = {}): Promise<Uint8Array> {
    return this.#access.connection.bytes(`${this.#path}/raw`, { password: this.#access.password, ...options })
  }

  /** Which mail clients support the HTML and CSS of the message. Rejects with ApiError if it has no HTML. */
  checkHtml(options: CallOptions = {}): Promise<Schemas['HtmlCheck']> {
    const { connection, password } = this.#access
    return connection.get(`${this.#path}/html-check`, { password, ...options })
  }

  /** Lets the server request each link of the message, which may take 25 seconds. */
  checkLinks(options: CallOptions = {}): Promise<Schemas['CheckedLink'][]> {
    const { connection, password } = this.#access
    return connection.post(`${this.#path}/link-check`, { password, ...options })
  }

  /** Deletes the message permanently. */
  delete(options: CallOptions = {}): Promise<Schemas['DeletedMessage']> {
    return this.#access.connection.delete(this.#path, { password: this.#access.password, ...options })
  }
}

/**
 * The address of the first link of a message that contains a text, or matches an expression, in its address or its
 * text; of the first link, if the text is empty.
 */
export function findLink(message: Pick<Message, 'links'>, pattern: string | RegExp): string | undefined {
  return linkFinder(pattern)(message)
}

/**
 * The same as a function of the message. Throws MayflyError if the pattern is neither a text nor an expression.
 * @internal
 */
export function linkFinder(
  pattern: string | RegExp,
): (message: Pick<Message, 'links'>) => string | undefined {
  const matches = textMatcher(pattern)
  return ({ links }) => links.find(({ href, text }) => matches(href) || matches(text ?? ''))?.href
}

function textMatcher(pattern: string | RegExp): (text: string) => boolean {
  if (typeof pattern === 'string') {
    const wanted = pattern.toLowerCase()
    return (text) => text.toLowerCase().includes(wanted)
  }
  requireExpression(pattern)
  // An expression with the flag `g` or `y` would start where its last match ended.
  const expression = new RegExp(pattern, pattern.flags.replaceAll(/[gy]/g, ''))
  return (text) => expression.test(text)
}

/**
 * An expression as the server reads it. Throws MayflyError if it is neither a text nor an expression.
 * @internal
 */
export function expressionOf(pattern: string | RegExp): string {
  if (typeof pattern === 'string') return pattern
  requireExpression(pattern)
  const source = pattern.source.replaceAll(
    /\\(?:\/|u\{([\da-f]+)\}|u([\da-f]{4})|[^])/gi,
    (escape, point?: string, unit?: string) => {
      const digits = point ?? unit
      if (digits !== undefined) return `\\x{${digits}}`
      return escape === '\\/' ? '/' : escape
    },
  )
  const flags = pattern.flags.replaceAll(/[^ims]/g, '')
  return flags === '' ? source : `(?${flags})${source}`
}

function requireExpression(pattern: unknown): void {
  // Not by instanceof, because a test runner may have a RegExp of its own.
  if (Object.prototype.toString.call(pattern) === '[object RegExp]') return
  throw new MayflyError('The pattern must be a text or a regular expression.')
}
