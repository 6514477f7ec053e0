import { readCursor, readJson, type Connection } from './connection.js'
import { inboxEvents, type InboxEvent } from './inbox-events.js'
import { Message, type Access } from './message.js'
import type { CallOptions, QueryOptions, Schemas } from './options.js'
import { nextMatch, pollUntil, type WaitOptions } from './waiting.js'

interface OfInboxes {
  /** Only of inboxes that have all of these labels. */
  labels?: Readonly<Record<string, string>> | undefined
}

/** `labels` must have exactly one label. */
export type CountOptions = Pick<QueryOptions<'waitForMessage'>, 'mode' | 'perInbox' | 'labels'> & CallOptions

/** The mail of all inboxes of the key's environment, without that of protected inboxes. */
export class Messages {
  readonly #access: Access

  /** @internal */
  constructor(connection: Connection) {
    this.#access = { connection, password: undefined }
  }

  /** The messages that match, oldest first unless `order` is `desc`; all of them, or the first `limit`. */
  async list(options: QueryOptions<'listMessages'> = {}): Promise<Message[]> {
    const messages: Message[] = []
    for await (const page of this.pages(options)) messages.push(...page)
    return messages
  }

  /** The same, page by page. A page may be empty, and others follow. */
  async *pages(options: QueryOptions<'listMessages'> = {}): AsyncGenerator<Message[], void> {
    const pages = this.#access.connection.pages<Schemas['Message']>('/v1/messages', options)
    for await (const page of pages) yield page.map((each) => new Message(this.#access, each))
  }

  /** The last 100 recipients of the account that were refused, newest first. Kept in memory: empty after a restart. */
  listRefused(options: CallOptions = {}): Promise<Schemas['RefusedMail'][]> {
    return this.#access.connection.get('/v1/refused-mail', options)
  }

  /** The position after all messages that are there now, for `since` of `wait` and `events`. */
  cursor(options: CallOptions = {}): Promise<string> {
    const request = { method: 'GET', path: '/v1/messages', query: { order: 'desc', limit: 1 } } as const
    return this.#access.connection.send(request, options, readCursor)
  }

  /** The first message that matches in any inbox, as `waitForMessage` of an inbox. */
  wait(options: WaitOptions & OfInboxes = {}): Promise<Message> {
    const { timeoutMs = this.#access.connection.timeoutMs } = options
    const deadline = performance.now() + timeoutMs
    return nextMatch({
      access: this.#access,
      path: '/v1',
      address: 'any inbox',
      options,
      timeoutMs,
      deadline,
    })
  }

  /**
   * Waits until the inboxes with one label have received `count` messages, with deleted ones. Rejects with an ApiError whose
   * `problem` lists inboxes with `too_few` and `too_many`.
   */
  waitForCount(count: number, options: CountOptions): Promise<Schemas['MessageCount']> {
    const { timeoutMs = this.#access.connection.timeoutMs, ...others } = options
    const wait = { access: this.#access, path: '/v1', deadline: performance.now() + timeoutMs }
    return pollUntil(wait, { ...others, count }, readJson<Schemas['MessageCount']>)
  }

  /** What happens in all inboxes from now on, or after `since`, as `events` of an inbox. It does not end by itself. */
  async *events(
    options: { since?: string; signal?: AbortSignal } & OfInboxes = {},
  ): AsyncGenerator<InboxEvent, void> {
    const { since = await this.cursor({ signal: options.signal }), ...others } = options
    yield* inboxEvents(this.#access, '/v1', { ...others, since, isOfInbox: false })
  }
}
