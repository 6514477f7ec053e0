import { Connection, readJson } from './connection.js'
import { MayflyError } from './errors.js'
import { Inbox } from './inbox.js'
import { Messages } from './messages.js'
import type { BodyOptions, CallOptions, CamelCased, QueryOptions, Schemas } from './options.js'
import { Runs } from './runs.js'

export {
  ApiError,
  MayflyError,
  UnreachableError,
  WaitTimeoutError,
  WebhookVerificationError,
  type NearMiss,
  type Problem,
  type ProblemCode,
} from './errors.js'
export type { Inbox } from './inbox.js'
export type { InboxEvent } from './inbox-events.js'
export { findLink, type Attachment, type Message } from './message.js'
export type { Messages } from './messages.js'
export type { BodyOptions, CallOptions, QueryOptions, Schemas } from './options.js'
export type { RunLine, Runs } from './runs.js'
export { UnexpectedMessageError, type Filters, type MatchOptions, type WaitOptions } from './waiting.js'
export { verifyWebhook } from './verify-webhook.js'

export interface MayflyOptions {
  /** Where the API listens: by default MAYFLY_URL, or http://127.0.0.1:3000. */
  url?: string | undefined
  /** An API key: by default MAYFLY_KEY. */
  apiKey?: string | undefined
  /** Milliseconds for a call or a wait, retries included, unless it has its own; 30,000 by default. */
  timeoutMs?: number | undefined
  /** Used instead of the global `fetch`. */
  fetch?: typeof fetch | undefined
}

const DEFAULT_URL = 'http://127.0.0.1:3000'
const DEFAULT_TIMEOUT_MS = 30_000

/**
 * The client of a Mayfly server. Methods reject with ApiError if the server refuses the request, and with
 * UnreachableError if it does not answer; both are MayflyError.
 */
export class Mayfly {
  readonly inboxes: Inboxes
  readonly messages: Messages
  readonly accounts: Accounts
  readonly quotas: Quotas
  readonly keys: Keys
  readonly members: Members
  readonly invitations: Invitations
  readonly domains: Domains
  readonly webhooks: Webhooks
  readonly usage: Usage
  readonly faults: Faults
  readonly runs: Runs
  readonly audit: Audit
  readonly #connection: Connection

  constructor(options: MayflyOptions = {}) {
    const environment: Record<string, string | undefined> = typeof process === 'undefined' ? {} : process.env
    const { timeoutMs = DEFAULT_TIMEOUT_MS, fetch = globalThis.fetch } = options
    const url = requireUrl(options.url ?? (environment.MAYFLY_URL || DEFAULT_URL))
    const apiKey = requireKey(options.apiKey ?? environment.MAYFLY_KEY ?? '')
    this.#connection = new Connection({ url, apiKey, timeoutMs, fetch })
    this.inboxes = new Inboxes(this.#connection)
    this.messages = new Messages(this.#connection)
    this.accounts = new Accounts(this.#connection)
    this.quotas = new Quotas(this.#connection)
    this.faults = new Faults(this.#connection)
    this.keys = new Keys(this.#connection)
    this.members = new Members(this.#connection)
    this.invitations = new Invitations(this.#connection)
    this.domains = new Domains(this.#connection)
    this.webhooks = new Webhooks(this.#connection)
    this.usage = new Usage(this.#connection)
    this.runs = new Runs(this.#connection)
    this.audit = new Audit(this.#connection)
  }

  /** The account that the key belongs to. */
  account(options: CallOptions = {}): Promise<Schemas['Account']> {
    return this.#connection.get('/v1/account', options)
  }

  /** Sets how people sign in to the console for the account. Needs the scope `admin`. */
  setSignIn(options: BodyOptions<'SetSignIn'>): Promise<Schemas['Account']> {
    return this.#connection.post('/v1/account', options, 'PATCH')
  }

  /** Who changed what in the account, newest first by default. Needs the scope `admin` or `audit`. */
  activity(options: QueryOptions<'listActivity'> = {}): Promise<Schemas['Activity'][]> {
    return this.#connection.list('/v1/activity', options)
  }

  /** The version of the server. */
  version(options: CallOptions = {}): Promise<Schemas['Version']> {
    return this.#connection.get('/version', options)
  }
}

/** The URL without slashes at its end. */
function requireUrl(text: string): string {
  try {
    const { protocol, username, search, hash, href } = new URL(text)
    const isHttp = protocol === 'http:' || protocol === 'https:'
    if (isHttp && [username, search, hash].join('') === '') return href.replace(/\/+$/, '')
  } catch {
    // It is refused below.
  }
  const example = `such as ${DEFAULT_URL}`
  throw new MayflyError(
    `MAYFLY_URL, or \`url\`, must be an http or https URL without a user, query or fragment, ${example}.`,
  )
}

/** A key from a file may end with a line end. */
function requireKey(text: string): string {
  const key = text.trim()
  if (key === '') throw new MayflyError('No API key: set MAYFLY_KEY, or pass `apiKey`.')
  if (!/^[!-~]+$/.test(key))
    throw new MayflyError('The API key has a character that no key has, such as a space.')
  return key
}

class Audit {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /** The audit log of the account. Needs the scope `audit`, like all of it. */
  logs(options: CallOptions = {}): Promise<Schemas['AuditLog'][]> {
    return this.connection.get('/v1/audit/logs', options)
  }

  /** The last checkpoint of a log, as text (C2SP tlog-checkpoint). */
  checkpoint(logId: string, options: CallOptions = {}): Promise<string> {
    return this.#text(`/v1/audit/logs/${encodeURIComponent(logId)}/checkpoint`, options)
  }

  /** What a log has up to its last checkpoint. */
  events(logId: string, options: QueryOptions<'listAuditEvents'> = {}): Promise<Schemas['AuditEvent'][]> {
    return this.connection.list(`/v1/audit/logs/${encodeURIComponent(logId)}/events`, options)
  }

  /** Proves that an event is in a log, as text (C2SP tlog-proof). */
  proof(logId: string, eventId: string, options: CallOptions = {}): Promise<string> {
    const path = `/v1/audit/logs/${encodeURIComponent(logId)}/events/${encodeURIComponent(eventId)}/proof`
    return this.#text(path, options)
  }

  /** The certificate of erasure of an inbox that has ended. */
  erasure(inboxId: string, options: CallOptions = {}): Promise<Schemas['Erasure']> {
    return this.connection.get(`/v1/inboxes/${encodeURIComponent(inboxId)}/erasure`, options)
  }

  /** An inbox as it was, without content, at a time (RFC 3339) or with a number of leaves. */
  inboxAsOf(
    asOf: string | number,
    inboxId: string,
    options: CallOptions = {},
  ): Promise<Schemas['PastInbox']> {
    return this.connection.get(`/v1/inboxes/${encodeURIComponent(inboxId)}`, { asOf, ...options })
  }

  messagesAsOf(
    asOf: string | number,
    inboxId: string,
    options: CallOptions = {},
  ): Promise<Schemas['PastMessage'][]> {
    return this.connection.list(`/v1/inboxes/${encodeURIComponent(inboxId)}/messages`, { asOf, ...options })
  }

  historyAsOf(
    asOf: string | number,
    inboxId: string,
    options: CallOptions = {},
  ): Promise<Schemas['Event'][]> {
    return this.connection.list(`/v1/inboxes/${encodeURIComponent(inboxId)}/history`, { asOf, ...options })
  }

  accountAsOf(asOf: string | number, options: CallOptions = {}): Promise<Schemas['Account']> {
    return this.connection.get('/v1/account', { asOf, ...options })
  }

  async #text(path: string, options: CallOptions): Promise<string> {
    return new TextDecoder().decode(await this.connection.bytes(path, options))
  }
}

class Inboxes {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /** Creates an inbox with a new address. */
  async create(options: BodyOptions<'CreateInbox'> = {}): Promise<Inbox> {
    return this.#inboxOf(await this.connection.post<Schemas['CreatedInbox']>('/v1/inboxes', options))
  }

  /** Creates `count` inboxes, at most 10,000, with the options of `create`. `name` gets a number: `user-1`, `user-2`. */
  async createMany(options: BodyOptions<'CreateInboxes'>): Promise<Inbox[]> {
    const created = await this.connection.post<Schemas['CreatedInbox'][]>('/v1/inboxes/bulk', options)
    return created.map((each) => this.#inboxOf(each))
  }

  /** For a protected inbox, with its `password`. Rejects with the code `inbox-deleted` or `inbox-expired` after its end. */
  async get(id: string, options: CallOptions = {}): Promise<Inbox> {
    const data = await this.connection.get<Schemas['Inbox']>(`/v1/inboxes/${encodeURIComponent(id)}`, options)
    return new Inbox(this.connection, data, options.password)
  }

  /** The inboxes of the key's environment, newest first; all of them, or the first `limit`. */
  list(options: QueryOptions<'listInboxes'> = {}): Promise<(Schemas['Inbox'] | Schemas['EndedInbox'])[]> {
    return this.connection.list('/v1/inboxes', options)
  }

  /** The same, page by page. */
  pages(
    options: QueryOptions<'listInboxes'> = {},
  ): AsyncGenerator<(Schemas['Inbox'] | Schemas['EndedInbox'])[], void> {
    return this.connection.pages('/v1/inboxes', options)
  }

  /** Deletes an inbox and all its mail permanently. */
  delete(id: string, options: CallOptions = {}): Promise<Schemas['DeletedInbox']> {
    return this.connection.delete(`/v1/inboxes/${encodeURIComponent(id)}`, options)
  }

  /**
   * Deletes inboxes by their `ids`, at most 10,000, or all with a `label` such as `run:42`. Resolves with how many it
   * deleted. Skips protected ones, unless the key has the scope `admin`. `timeoutMs` is for each request: it sends more
   * than one if more than 10,000 inboxes have the label.
   */
  async deleteMany(
    options: CamelCased<Schemas['DeleteInboxes']> & Omit<CallOptions, 'idempotencyKey'>,
  ): Promise<number> {
    let total = 0
    for (;;) {
      const path = '/v1/inboxes/bulk-delete'
      const { deleted, remaining } = await this.connection.post<Schemas['DeletedInboxes']>(path, options)
      total += deleted
      if (remaining === 0) return total
    }
  }

  #inboxOf({ password, ...data }: Schemas['CreatedInbox']): Inbox {
    return new Inbox(this.connection, data, password)
  }
}

/**
 * Faults on purpose: of an inbox, by its id, or of all new inboxes of an environment, by its name. The latter needs the
 * scope `admin`.
 */
class Faults {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  get(inboxOrEnvironment: string, options: CallOptions = {}): Promise<Schemas['InboxFault'][]> {
    return this.connection.get(pathOfFaults(inboxOrEnvironment), options)
  }

  /** Replaces all faults. */
  set(
    inboxOrEnvironment: string,
    faults: readonly Schemas['InboxFault'][],
    options: CallOptions = {},
  ): Promise<Schemas['InboxFault'][]> {
    const request = { method: 'PUT', path: pathOfFaults(inboxOrEnvironment), body: faults } as const
    return this.connection.send(request, options, readJson<Schemas['InboxFault'][]>)
  }

  remove(inboxOrEnvironment: string, options: CallOptions = {}): Promise<Schemas['InboxFault'][]> {
    return this.connection.delete(pathOfFaults(inboxOrEnvironment), options)
  }
}

function pathOfFaults(inboxOrEnvironment: string): string {
  return `/v1/${inboxOrEnvironment.startsWith('inb_') ? 'inboxes' : 'environments'}/${encodeURIComponent(inboxOrEnvironment)}/faults`
}

/** The accounts of the server. Needs the scope `operator`. */
class Accounts {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /** Opens an account. The secret of its first key is only in this answer. */
  open(options: BodyOptions<'OpenAccount'>): Promise<Schemas['AccountWithKey']> {
    return this.connection.post('/v1/accounts', options)
  }

  list(options: QueryOptions<'listAccounts'> = {}): Promise<Schemas['Account'][]> {
    return this.connection.list('/v1/accounts', options)
  }

  get(id: string, options: CallOptions = {}): Promise<Schemas['Account']> {
    return this.connection.get(`/v1/accounts/${encodeURIComponent(id)}`, options)
  }

  change(id: string, options: BodyOptions<'ChangeAccount'>): Promise<Schemas['Account']> {
    return this.connection.post(`/v1/accounts/${encodeURIComponent(id)}`, options, 'PATCH')
  }

  /** Refuses all requests of an account, and its mail, until it is resumed. */
  suspend(id: string, options: CallOptions = {}): Promise<Schemas['Account']> {
    return this.connection.post(`/v1/accounts/${encodeURIComponent(id)}/suspend`, options)
  }

  resume(id: string, options: CallOptions = {}): Promise<Schemas['Account']> {
    return this.connection.post(`/v1/accounts/${encodeURIComponent(id)}/resume`, options)
  }

  /** Closes an account for good. Its keys, domains, webhooks and inboxes end within seconds, with all mail. */
  close(id: string, options: CallOptions = {}): Promise<Schemas['Account']> {
    return this.connection.post(`/v1/accounts/${encodeURIComponent(id)}/close`, options)
  }

  /** Issues a key for an account. The secret is only in this answer. */
  issueKey(id: string, options: BodyOptions<'IssueKey'>): Promise<Schemas['KeyWithSecret']> {
    return this.connection.post(`/v1/accounts/${encodeURIComponent(id)}/keys`, options)
  }
}

/** What the account may use, and uses. */
class Quotas {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  list(options: CallOptions = {}): Promise<Schemas['Quota'][]> {
    return this.connection.get('/v1/quotas', options)
  }

  /** Sets a quota of the account, an environment or a key, or with `limit: null` that of the plan. Needs the scope `admin`. */
  set(name: Schemas['Quota']['name'], options: BodyOptions<'SetQuota'>): Promise<Schemas['Quota']> {
    return this.connection.post(`/v1/quotas/${name}`, options, 'PUT')
  }
}

/** The API keys of the account. Needs the scope `admin`. */
class Keys {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /** The secret is only in this answer. */
  issue(options: BodyOptions<'IssueKey'>): Promise<Schemas['KeyWithSecret']> {
    return this.connection.post('/v1/keys', options)
  }

  list(options: QueryOptions<'listKeys'> = {}): Promise<Schemas['Key'][]> {
    return this.connection.list('/v1/keys', options)
  }

  get(id: string, options: CallOptions = {}): Promise<Schemas['Key']> {
    return this.connection.get(`/v1/keys/${encodeURIComponent(id)}`, options)
  }

  /** Replaces the secret. The old one is valid for `grace`, such as `10m`; by default it ends at once. */
  rotate(id: string, options: BodyOptions<'RotateKey'> = {}): Promise<Schemas['KeyWithSecret']> {
    return this.connection.post(`/v1/keys/${encodeURIComponent(id)}/rotate`, options)
  }

  revoke(id: string, options: CallOptions = {}): Promise<Schemas['Key']> {
    return this.connection.delete(`/v1/keys/${encodeURIComponent(id)}`, options)
  }
}

/** The people of the account. Needs the scope `admin`. */
class Members {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  list(options: QueryOptions<'listMembers'> = {}): Promise<Schemas['Member'][]> {
    return this.connection.list('/v1/members', options)
  }

  get(id: string, options: CallOptions = {}): Promise<Schemas['Member']> {
    return this.connection.get(`/v1/members/${encodeURIComponent(id)}`, options)
  }

  /** Changes the role, the environments or the permissions. */
  change(id: string, options: BodyOptions<'ChangeMember'>): Promise<Schemas['Member']> {
    return this.connection.post(`/v1/members/${encodeURIComponent(id)}`, options, 'PATCH')
  }

  /** Ends the sessions and personal keys of a member. Its service keys stay, and are in the answer. */
  remove(id: string, options: CallOptions = {}): Promise<Schemas['RemovedMember']> {
    return this.connection.delete(`/v1/members/${encodeURIComponent(id)}`, options)
  }
}

/** Invitations that were not used. Needs the scope `admin`. */
class Invitations {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /** Invites somebody. The link, `url`, is only in this answer. */
  create(options: BodyOptions<'InviteMember'>): Promise<Schemas['InvitationWithUrl']> {
    return this.connection.post('/v1/invitations', options)
  }

  list(options: QueryOptions<'listInvitations'> = {}): Promise<Schemas['Invitation'][]> {
    return this.connection.list('/v1/invitations', options)
  }

  get(id: string, options: CallOptions = {}): Promise<Schemas['Invitation']> {
    return this.connection.get(`/v1/invitations/${encodeURIComponent(id)}`, options)
  }

  /** Makes a new link; the former one is invalid. */
  resend(id: string, options: BodyOptions<'ResendInvitation'> = {}): Promise<Schemas['InvitationWithUrl']> {
    return this.connection.post(`/v1/invitations/${encodeURIComponent(id)}/resend`, options)
  }

  revoke(id: string, options: CallOptions = {}): Promise<Schemas['Invitation']> {
    return this.connection.delete(`/v1/invitations/${encodeURIComponent(id)}`, options)
  }
}

/** The domains whose mail the account receives. Needs the scope `admin`. */
class Domains {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /** Registers a domain of your own, whose `records` must then be in DNS, or with `hosted` one below the mail domain. */
  create(options: BodyOptions<'CreateDomain'>): Promise<Schemas['Domain']> {
    return this.connection.post('/v1/domains', options)
  }

  list(options: QueryOptions<'listDomains'> = {}): Promise<Schemas['Domain'][]> {
    return this.connection.list('/v1/domains', options)
  }

  get(id: string, options: CallOptions = {}): Promise<Schemas['Domain']> {
    return this.connection.get(domainPath(id), options)
  }

  change(id: string, options: BodyOptions<'ChangeDomain'>): Promise<Schemas['Domain']> {
    return this.connection.post(domainPath(id), options, 'PATCH')
  }

  delete(id: string, options: CallOptions = {}): Promise<Schemas['Domain']> {
    return this.connection.delete(domainPath(id), options)
  }

  /** Checks the DNS records now. */
  verify(id: string, options: CallOptions = {}): Promise<Schemas['Domain']> {
    return this.connection.post(`${domainPath(id)}/verify`, options)
  }

  /** The records in the format of a zone file. */
  async zoneFile(id: string, options: CallOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.connection.bytes(`${domainPath(id)}/zonefile`, options))
  }
}

function domainPath(id: string): string {
  return `/v1/domains/${encodeURIComponent(id)}`
}

/** Webhooks. Those of a whole environment need the scope `admin`; `Inbox` has methods for those of an inbox. */
class Webhooks {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /** Registers a webhook for the whole environment. Its secret is only in this answer. */
  create(options: BodyOptions<'RegisterWebhook'>): Promise<Schemas['WebhookWithSecret']> {
    return this.connection.post('/v1/webhooks', options)
  }

  list(options: QueryOptions<'listWebhooks'> = {}): Promise<Schemas['Webhook'][]> {
    return this.connection.list('/v1/webhooks', options)
  }

  get(id: string, options: CallOptions = {}): Promise<Schemas['Webhook']> {
    return this.connection.get(pathOf(id), options)
  }

  change(id: string, options: BodyOptions<'ChangeWebhook'>): Promise<Schemas['Webhook']> {
    return this.connection.post(pathOf(id), options, 'PATCH')
  }

  delete(id: string, options: CallOptions = {}): Promise<Schemas['Webhook']> {
    return this.connection.delete(pathOf(id), options)
  }

  /** Replaces the secret. During the `grace`, deliveries carry a signature of each. */
  rotateSecret(
    id: string,
    options: BodyOptions<'RotateWebhookSecret'> = {},
  ): Promise<Schemas['WebhookWithSecret']> {
    return this.connection.post(`${pathOf(id)}/secret/rotate`, options)
  }

  /** Sends a sample. */
  test(id: string, options: CallOptions = {}): Promise<Schemas['Delivery']> {
    return this.connection.post(`${pathOf(id)}/test`, options)
  }

  /** Newest first; all of them, or the first `limit`. */
  listDeliveries(id: string, options: QueryOptions<'listDeliveries'> = {}): Promise<Schemas['Delivery'][]> {
    return this.connection.list(`${pathOf(id)}/deliveries`, options)
  }

  getDelivery(id: string, deliveryId: string, options: CallOptions = {}): Promise<Schemas['Delivery']> {
    return this.connection.get(`${pathOf(id)}/deliveries/${encodeURIComponent(deliveryId)}`, options)
  }

  /** Sends events again: those between `from` and `to`, or those of `deliveryIds`. */
  replay(id: string, options: BodyOptions<'RequestReplay'>): Promise<Schemas['Replay']> {
    return this.connection.post(`${pathOf(id)}/replays`, options)
  }

  listReplays(id: string, options: QueryOptions<'listReplays'> = {}): Promise<Schemas['Replay'][]> {
    return this.connection.list(`${pathOf(id)}/replays`, options)
  }

  getReplay(id: string, replayId: string, options: CallOptions = {}): Promise<Schemas['Replay']> {
    return this.connection.get(`${pathOf(id)}/replays/${encodeURIComponent(replayId)}`, options)
  }

  cancelReplay(id: string, replayId: string, options: CallOptions = {}): Promise<Schemas['Replay']> {
    return this.connection.delete(`${pathOf(id)}/replays/${encodeURIComponent(replayId)}`, options)
  }
}

function pathOf(webhookId: string): string {
  return `/v1/webhooks/${encodeURIComponent(webhookId)}`
}

/** Usage of the key; with the scope `admin`, of the account. */
class Usage {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /** Counts per interval, by default those of the last 24 hours by the hour. */
  read(options: QueryOptions<'readUsage'> = {}): Promise<Schemas['UsageRow'][]> {
    return this.connection.get('/v1/usage', options)
  }

  /** A summary of everything that has the labels: of a test run or a load run. */
  report(options: QueryOptions<'reportUsage'>): Promise<Schemas['UsageReport']> {
    return this.connection.get('/v1/usage/report', options)
  }

  /**
   * The account's usage as a file, as it arrives. Needs the scope `admin`. `timeoutMs` and `signal` are for its start;
   * cancel the stream to end it early.
   */
  async export(options: QueryOptions<'exportUsage'> = {}): Promise<ReadableStream<Uint8Array>> {
    return this.connection.stream('/v1/usage/export', options)
  }
}

export type { Accounts, Domains, Faults, Inboxes, Invitations, Keys, Members, Usage, Webhooks }
