import { readCursor, type Connection } from './connection.js'
import { ApiError, MayflyError, WaitTimeoutError } from './errors.js'
import { inboxEvents, type InboxEvent } from './inbox-events.js'
import { expressionOf, linkFinder, Message, withProperties, type Access } from './message.js'
import type { BodyOptions, CallOptions, QueryOptions, Schema, Schemas } from './options.js'
import {
  nextMatch,
  UnexpectedMessageError,
  type MatchOptions,
  type Wait,
  type WaitOptions,
} from './waiting.js'

const EXPECT_NONE_MS = 5_000

// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- the package has the name instead of its properties
interface InboxProperties extends Schema<'Inbox'> {}

/** An inbox. Its properties are those that the API returned; `refresh` reads them again. */
export class Inbox extends withProperties<InboxProperties>() {
  readonly #access: Access
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, data: Schemas['Inbox'], password: string | undefined) {
    super(data)
    this.#access = { connection, password }
    this.#path = `/v1/inboxes/${data.id}`
  }

  /** The password of a protected inbox. It is sent with each request of this object. */
  get password(): string | undefined {
    return this.#access.password
  }

  /** Reads the properties again, such as `message_count`. */
  async refresh(options: CallOptions = {}): Promise<this> {
    const data = await this.#access.connection.get<Schemas['Inbox']>(this.#path, this.#call(options))
    return Object.assign(this, data)
  }

  /** Changes what is given, here too. `duration` counts from the creation. */
  async update(options: BodyOptions<'UpdateInbox'>): Promise<this> {
    const { connection } = this.#access
    const data = await connection.post<Schemas['Inbox']>(this.#path, this.#call(options), 'PATCH')
    return Object.assign(this, data)
  }

  /** The position after all messages that are there now, for `since`. */
  cursor(options: CallOptions = {}): Promise<string> {
    const request = { method: 'GET', path: this.#path } as const
    return this.#access.connection.send(request, this.#call(options), readCursor)
  }

  /**
   * The first message that matches: the oldest one that is there already, or the next to arrive. Waits for 30
   * seconds, or `timeoutMs`. Rejects with WaitTimeoutError if none arrives, with ApiError if the inbox ends.
   */
  waitForMessage(options: WaitOptions = {}): Promise<Message> {
    return this.#wait(options, this.#limit(options.timeoutMs))
  }

  /** The most likely one-time code of the first message that matches and has a code. Rejects as `waitForMessage`. */
  async waitForCode(options: WaitOptions = {}): Promise<string> {
    const message = await this.waitForMessage({ ...options, hasCode: true })
    return message.codes[0]?.value ?? ''
  }

  /**
   * The address of the first link that contains a text, or matches an expression, in its address or its text; any
   * link, without a pattern. Rejects as `waitForMessage`.
   */
  async waitForLink(pattern: string | RegExp = '', options: WaitOptions = {}): Promise<string> {
    const find = linkFinder(pattern)
    const match = (message: Message) => find(message) !== undefined && (options.match?.(message) ?? true)
    const wanted = { ...options, hasLink: true, match }
    const requirement = `It has no link that matches ${String(pattern)}.`
    const message = await this.#wait(wanted, this.#limit(options.timeoutMs), { requirement })
    return find(message) ?? ''
  }

  /**
   * The first match of an expression in the subject, the text or the visible text of the first message that has one:
   * its `text` and its `groups`. The server searches in the syntax of RE2, which has no lookaheads and backreferences;
   * a text is an expression too. Rejects as `waitForMessage`.
   */
  async waitForMatch(
    pattern: string | RegExp,
    options: Omit<WaitOptions, 'extract'> = {},
  ): Promise<Schemas['Extracted']> {
    const { extracted } = await this.waitForMessage({ ...options, extract: expressionOf(pattern) })
    const [first] = extracted ?? []
    if (first === undefined) throw new MayflyError('The server does not support extract.')
    return first
  }

  /** The first `count` messages that match, oldest first, once there are as many. Rejects as `waitForMessage`. */
  async waitForCount(count: number, options: MatchOptions = {}): Promise<Message[]> {
    const limit = this.#limit(options.timeoutMs)
    const messages: Message[] = []
    let { since } = options
    while (messages.length < count) {
      const found = `${messages.length} of ${count} messages matched. `
      const message = await this.#wait({ ...options, since }, limit, { found })
      messages.push(message)
      since = message.cursor ?? since
    }
    return messages
  }

  /**
   * Resolves if no message matches within 5 seconds, or `withinMs`. Messages that are there already count, unless
   * they are before `since`. Rejects with UnexpectedMessageError.
   */
  async expectNone(
    options: Omit<MatchOptions, 'timeoutMs'> & { withinMs?: number | undefined } = {},
  ): Promise<void> {
    const { withinMs = EXPECT_NONE_MS, ...wanted } = options
    let received: Message
    try {
      received = await this.#wait(wanted, this.#limit(withinMs))
    } catch (error) {
      if (error instanceof WaitTimeoutError) return
      throw error
    }
    throw new UnexpectedMessageError(received, this.address)
  }

  /** The messages that match, oldest first unless `order` is `desc`; all of them, or the first `limit`. */
  async listMessages(options: QueryOptions<'listInboxMessages'> = {}): Promise<Message[]> {
    const messages: Message[] = []
    for await (const page of this.messagePages(options)) messages.push(...page)
    return messages
  }

  /** The same, page by page. */
  async *messagePages(options: QueryOptions<'listInboxMessages'> = {}): AsyncGenerator<Message[], void> {
    const path = `${this.#path}/messages`
    const pages = this.#access.connection.pages<Schemas['Message']>(path, this.#call(options))
    for await (const page of pages) yield page.map((each) => new Message(this.#access, each))
  }

  /** With `extract`, the message has the matches of that expression as `extracted`. */
  async getMessage(
    id: string,
    options: CallOptions & { extract?: string | undefined } = {},
  ): Promise<Message> {
    const path = `${this.#path}/messages/${encodeURIComponent(id)}`
    const query = { ...this.#call(options), raw: false }
    return new Message(this.#access, await this.#access.connection.get<Schemas['Message']>(path, query))
  }

  /** Deletes a message permanently. */
  deleteMessage(id: string, options: CallOptions = {}): Promise<Schemas['DeletedMessage']> {
    const path = `${this.#path}/messages/${encodeURIComponent(id)}`
    return this.#access.connection.delete(path, this.#call(options))
  }

  /**
   * What happens in the inbox from now on, or after `since`, as it happens. If the connection breaks, the iteration
   * continues where it stopped. It ends when the inbox has ended.
   */
  async *events(options: { since?: string; signal?: AbortSignal } = {}): AsyncGenerator<InboxEvent, void> {
    const since = options.since ?? (await this.cursor(options))
    yield* inboxEvents(this.#access, this.#path, { since, signal: options.signal, isOfInbox: true })
  }

  /** Every event of the inbox, without content; also after its end. */
  history(options: QueryOptions<'listInboxHistory'> = {}): Promise<Schemas['Event'][]> {
    return this.#access.connection.list(`${this.#path}/history`, options)
  }

  /** Registers a webhook for this inbox. Its secret is only in this answer. */
  createWebhook(options: BodyOptions<'RegisterWebhook'>): Promise<Schemas['WebhookWithSecret']> {
    return this.#access.connection.post(`${this.#path}/webhooks`, this.#call(options))
  }

  listWebhooks(options: QueryOptions<'listInboxWebhooks'> = {}): Promise<Schemas['Webhook'][]> {
    return this.#access.connection.list(`${this.#path}/webhooks`, this.#call(options))
  }

  /** Bearer tokens for this inbox only. */
  get tokens(): InboxTokens {
    return new InboxTokens(this.#access, `${this.#path}/tokens`)
  }

  /** Deletes the inbox and all its mail permanently. */
  delete(options: CallOptions = {}): Promise<Schemas['DeletedInbox']> {
    return this.#access.connection.delete(this.#path, this.#call(options))
  }

  /** Deletes the inbox at the end of the block that declares it with `await using`, unless it has ended before. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.delete()
    } catch (error) {
      const hasEnded = error instanceof ApiError && error.status === 410
      if (!hasEnded) throw error
    }
  }

  /** Injects a message without SMTP. It is in the inbox when this resolves. */
  async injectMessage(options: BodyOptions<'InjectMessage'>): Promise<Message> {
    const { connection } = this.#access
    const data = await connection.post<Schemas['Message']>(`${this.#path}/messages`, this.#call(options))
    return new Message(this.#access, data)
  }

  #call<Options extends CallOptions>(options: Options): Options & CallOptions {
    return { password: this.#access.password, ...options }
  }

  #limit(timeoutMs: number = this.#access.connection.timeoutMs): Pick<Wait, 'timeoutMs' | 'deadline'> {
    return { timeoutMs, deadline: performance.now() + timeoutMs }
  }

  #wait(
    options: WaitOptions,
    limit: Pick<Wait, 'timeoutMs' | 'deadline'>,
    words: Pick<Wait, 'requirement' | 'found'> = {},
  ): Promise<Message> {
    const { address } = this
    return nextMatch({ access: this.#access, path: this.#path, address, options, ...limit, ...words })
  }
}

/** The tokens of an inbox. A client whose `apiKey` is a token can read that inbox and nothing else. */
class InboxTokens {
  /** @internal */
  constructor(
    private readonly access: Access,
    private readonly path: string,
  ) {}

  /** The `token` is only in this answer. With the access `owner` it may also delete the inbox. */
  create(options: BodyOptions<'CreateInboxToken'> = {}): Promise<Schemas['InboxTokenWithSecret']> {
    return this.access.connection.post(this.path, this.#call(options))
  }

  /** Those that are valid. */
  list(options: CallOptions = {}): Promise<Schemas['InboxToken'][]> {
    return this.access.connection.get(this.path, this.#call(options))
  }

  revoke(id: string, options: CallOptions = {}): Promise<Schemas['RevokedInboxToken']> {
    return this.access.connection.delete(`${this.path}/${encodeURIComponent(id)}`, this.#call(options))
  }

  #call<Options extends CallOptions>(options: Options): Options & CallOptions {
    return { password: this.access.password, ...options }
  }
}
