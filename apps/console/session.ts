import {
  ApiError,
  Mayfly,
  MayflyError,
  UnreachableError,
  type Problem,
  type Schemas,
} from '#clients/typescript/src/mayfly.js'

/*
 * The session of this page. The browser has a cookie that only paths under /console receive. The page trades it for a
 * bearer token of one environment, which stays in memory and is renewed before it expires.
 */

/** Access to the mail of an environment, or of one inbox. */
export interface MailAccess {
  readonly api: Mayfly
  /** Passwords of protected inboxes, which the user has entered, by the id of the inbox. */
  readonly passwords: Map<string, string>
  /** A single-use URL that shows the HTML of a message, and how much remote content it blocks. Rejects with ApiError. */
  render(
    inboxId: string,
    messageId: string,
    hasRemoteContent: boolean,
  ): Promise<{ url: string; blocked: number }>
}

type Scope = Schemas['Key']['scopes'][number]

/** What `POST /console/session` returns. */
interface TokenAnswer {
  token: string
  expires_at: string
  environment: string
  environments: string[]
  session: { id: string; expires_at: string }
  /** Null for a session that was started with a service key. */
  member: Pick<Schemas['Member'], 'id' | 'email' | 'role' | 'environments' | 'issuer'> | null
  scopes: Scope[]
  account: { id: string; name: string; plan: string }
  smtp_port: number
  mail_domain: string
}

/** A session as `GET /console/sessions` lists it. */
export interface ListedSession {
  id: string
  created_at: string
  expires_at: string
  key_id: string | null
  member_id: string | null
  current: boolean
}

/** A token is renewed when it is valid for less than this. */
const RENEW_BEFORE_MS = 60_000

/**
 * Redeems the secret of a sign-in link, or an API key with the scope `admin`. Replaces a session of another key only if
 * `replace` is true. Rejects with ApiError.
 */
export async function signIn(secret: string, { replace }: { replace: boolean }): Promise<void> {
  await request('POST', '/console/sign-in', { secret, replace })
}

/** An identity provider that members can sign in with. */
export interface IdentityProvider {
  name: string
  title: string
}

export function listProviders(): Promise<IdentityProvider[]> {
  return request('GET', '/console/providers')
}

/**
 * Leaves the page to sign in with an identity provider; or with `connect`, so that the member who is signed in can do so from
 * then on. Rejects with ApiError.
 */
export async function goToProvider(name: string, { connect }: { connect: boolean }): Promise<void> {
  const path = `/console/sign-in/${encodeURIComponent(name)}`
  location.assign((await request<{ url: string }>('POST', path, { connect })).url)
}

/** Resolves with where to sign out of the identity provider too; null if there is no such page. */
async function endSession(): Promise<string | null> {
  return (await request<{ url: string } | null>('DELETE', '/console/session'))?.url ?? null
}

/** Ends the session of the browser. */
export async function leave(): Promise<void> {
  location.assign((await endSession()) ?? '/console')
}

/** Whether signing in was refused because the browser has a session of another key. */
export function isAlreadySignedIn(error: unknown): boolean {
  return error instanceof ApiError && error.code === ALREADY_SIGNED_IN
}

/** Whether the member who is signed in can't do anything yet. */
export function lacksRole(error: unknown): boolean {
  return error instanceof ApiError && error.code === NO_ROLE
}

export class Session implements MailAccess {
  /** The client for the environment of this session. */
  readonly api: Mayfly
  readonly passwords = new Map<string, string>()
  #answer: TokenAnswer
  #renewal: Promise<void> | null = null

  private constructor(
    answer: TokenAnswer,
    private readonly onEnd: () => void,
    private readonly onRenewed: (session: Session) => void,
  ) {
    this.#answer = answer
    // The real token is set with each request, because it changes.
    this.api = new Mayfly({ url: location.origin, apiKey: 'of-the-session', fetch: this.#fetch })
  }

  /**
   * Null if nobody is signed in. `onEnd` is called when the session has ended, `onRenewed` when it has a new token, and
   * perhaps other environments.
   */
  static async open(
    environment: string | undefined,
    onEnd: () => void,
    onRenewed: (session: Session) => void,
  ): Promise<Session | null> {
    try {
      return new Session(await trade(environment), onEnd, onRenewed)
    } catch (error) {
      if (error instanceof ApiError && error.code === NOT_SIGNED_IN) return null
      throw error
    }
  }

  get id(): string {
    return this.#answer.session.id
  }

  get environment(): string {
    return this.#answer.environment
  }

  get environments(): readonly string[] {
    return this.#answer.environments
  }

  get account(): TokenAnswer['account'] {
    return this.#answer.account
  }

  /** Who is signed in; null if the session was started with a service key, and so has the access of an administrator. */
  get member(): TokenAnswer['member'] {
    return this.#answer.member
  }

  /** Whether the session has one of these scopes. */
  allows(...scopes: readonly Scope[]): boolean {
    return scopes.some((scope) => this.#answer.scopes.includes(scope))
  }

  get readsMail(): boolean {
    return this.allows('inboxes', 'read')
  }

  /** The port at which the server receives mail. */
  get smtpPort(): number {
    return this.#answer.smtp_port
  }

  /** The domain in which the server makes up addresses. */
  get mailDomain(): string {
    return this.#answer.mail_domain
  }

  render(inboxId: string, messageId: string, hasRemoteContent: boolean): ReturnType<MailAccess['render']> {
    const message = { inbox_id: inboxId, message_id: messageId, remote: hasRemoteContent }
    return requestRendering(this.#fetch, message, this.passwords.get(inboxId))
  }

  /** The newest events of an inbox, which may have ended, newest first. */
  async history(inboxId: string, signal: AbortSignal): Promise<Schemas['Event'][]> {
    const path = `/v1/inboxes/${encodeURIComponent(inboxId)}/history?order=desc&limit=100`
    return readAnswer(this.#fetch(path, { signal }))
  }

  /** Makes a link that signs a member in once. Only owners can make one for somebody else. */
  async createLink(memberId: string): Promise<string> {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ member_id: memberId })
    const sent = this.#fetch('/console/links', { method: 'POST', headers, body })
    return (await readAnswer<{ url: string }>(sent)).url
  }

  listSessions(): Promise<ListedSession[]> {
    return request('GET', '/console/sessions')
  }

  /** Ends another session, with its open streams. */
  async endSession(id: string): Promise<void> {
    await request('DELETE', `/console/sessions/${encodeURIComponent(id)}`)
  }

  /** The other accounts of the person who is signed in. */
  listAccounts(): Promise<Pick<TokenAnswer['account'], 'id' | 'name'>[]> {
    return request('GET', '/console/accounts')
  }

  /** Loads the page again, signed in to another account of the person. */
  async switchTo(accountId: string): Promise<void> {
    await request('POST', '/console/accounts', { account_id: accountId })
    location.assign('/console')
  }

  /** Also of the identity provider, which may ask whether to. */
  async signOut(): Promise<void> {
    const url = await endSession()
    if (url === null) this.onEnd()
    else location.assign(url)
  }

  async signOutEverywhere(): Promise<void> {
    await request('DELETE', '/console/sessions')
    this.onEnd()
  }

  /** `fetch` with the current token. If the server refuses it, with a new one. */
  readonly #fetch: typeof fetch = async (input, init = {}) => {
    const leftMs = Date.parse(this.#answer.expires_at) - Date.now()
    if (leftMs < RENEW_BEFORE_MS) await this.renew()
    const response = await fetchWith(this.#answer.token, input, init)
    if (response.status !== 401) return response
    await this.renew()
    return fetchWith(this.#answer.token, input, init)
  }

  /** Gets a new token, and the environments of the account. Calls at the same time share one request. */
  renew(): Promise<void> {
    this.#renewal ??= trade(this.environment)
      .then((answer) => {
        this.#answer = answer
        this.onRenewed(this)
      })
      .catch((error: unknown) => {
        if (error instanceof ApiError && error.code === NOT_SIGNED_IN) this.onEnd()
        throw error
      })
      .finally(() => {
        this.#renewal = null
      })
    return this.#renewal
  }
}

/** Not in the OpenAPI document, because only routes of the console have them. */
const NOT_SIGNED_IN: string = 'not-signed-in'
const ALREADY_SIGNED_IN: string = 'already-signed-in'
const NO_ROLE: string = 'no-role'

/** A token of the environment, or of another one if the member may no longer use it. */
async function trade(environment?: string): Promise<TokenAnswer> {
  try {
    return await request('POST', '/console/session', environment === undefined ? {} : { environment })
  } catch (error) {
    const isRefused = error instanceof ApiError && error.code === 'invalid-request'
    if (isRefused && environment !== undefined) return trade()
    throw error
  }
}

/** Creates an inbox for anyone. Resolves with its token. Rejects with ApiError or UnreachableError. */
export async function createPublicInbox(duration: string): Promise<string> {
  const { token } = await request<{ token: string }>('POST', '/public/inboxes', { duration })
  return token
}

/** A request with the cookie, which only paths under /console get. Rejects with ApiError or UnreachableError. */
async function request<Body>(method: string, path: string, body?: object): Promise<Body> {
  const init: RequestInit = { method, credentials: 'same-origin' }
  const withBody = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  return readAnswer(fetch(path, body === undefined ? init : { ...init, ...withBody }))
}

/** `fetch` with a bearer token. */
export function fetchWith(
  token: string,
  input: RequestInfo | URL,
  init: RequestInit = {},
): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.set('authorization', `Bearer ${token}`)
  return fetch(input, { ...init, headers })
}

/** `send` is a `fetch` that authenticates its requests. */
export async function requestRendering(
  send: typeof fetch,
  message: { inbox_id: string; message_id: string; remote: boolean },
  password: string | undefined,
): ReturnType<MailAccess['render']> {
  const headers = new Headers({ 'content-type': 'application/json' })
  if (password !== undefined) headers.set('mayfly-inbox-password', password)
  return readAnswer(send('/console/render', { method: 'POST', headers, body: JSON.stringify(message) }))
}

/** Rejects with ApiError or UnreachableError. */
async function readAnswer<Body>(sent: Promise<Response>): Promise<Body> {
  try {
    const response = await sent
    const body = response.status === 204 ? null : ((await response.json()) as unknown)
    if (!response.ok) throw new ApiError(body as Problem)
    return body as Body
  } catch (error) {
    throw error instanceof MayflyError
      ? error
      : new UnreachableError(location.origin, String(error), false, error)
  }
}
