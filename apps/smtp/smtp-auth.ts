import { mayUseEnvironment } from '#libs/domain/account/member.js'
import { isOrphaned, isValidSecret } from '#libs/domain/account/account.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import { ViewsCatchingUpError, type ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries } from '#libs/ports/read-model/queries.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { isLoopback } from '#libs/runtime/config/smtp-settings.js'
import { Refusal, REFUSALS, REPLIES, type Answer, type MaybePromise } from './replies.js'

/** The API key that a client authenticated with. */
export interface SenderKey {
  keyId: KeyId
  accountId: AccountId
  environment: string
}

/**
 * The user of a session: the hash of an API key, or 'anyone' if credentials are accepted unchecked. Credentials are
 * never kept.
 */
export type AuthenticatedUser = { secretHash: string } | 'anyone'

export type AuthOffer = 'offered' | 'needs-tls' | 'off'

export interface AuthOptions {
  settings: Pick<Settings, 'smtpAuth' | 'smtpHost'>
  accounts: Pick<AccountQueries, 'keyByHash'>
  views: Pick<ConsistentViews, 'readComplete'>
  keyUse: Pick<KeyUse, 'touch'>
  now: () => Date
  onError: (error: unknown) => void
}

/** AUTH (RFC 4954), as configured by `MAYFLY_SMTP_AUTH`. */
export class SmtpAuth {
  private readonly mode: 'any' | 'key' | 'off'

  constructor(private readonly options: AuthOptions) {
    const { smtpAuth, smtpHost } = options.settings
    this.mode = smtpAuth ?? (isLoopback(smtpHost) ? 'any' : 'off')
  }

  get isOff(): boolean {
    return this.mode === 'off'
  }

  /** By name. Those with tokens are offered only if credentials are not checked. */
  get mechanisms(): ReadonlyMap<string, Mechanism> {
    return this.mode === 'any' ? ALL_MECHANISMS : PASSWORD_MECHANISMS
  }

  /** The limit of an AUTH command and of a response; null if it is that of other commands. */
  get maxLineBytes(): number | null {
    return this.mode === 'any' ? MAX_AUTH_LINE_BYTES : null
  }

  /** Whether a connection is offered AUTH. An API key must not be sent over a network without TLS. */
  offer({ isSecure, remoteAddress }: { isSecure: boolean; remoteAddress: string }): AuthOffer {
    if (this.mode === 'key') return isSecure || isLoopback(remoteAddress) ? 'offered' : 'needs-tls'
    return this.mode === 'any' ? 'offered' : 'off'
  }

  /** Never rejects. */
  async authenticate(password: string): Promise<AuthenticatedUser | Refusal> {
    if (this.mode !== 'key') return 'anyone'
    try {
      const secretHash = hashSecret(password)
      const key = await this.find(secretHash)
      if (key === null) return REFUSALS.invalidCredentials
      this.options.keyUse.touch(key.keyId, this.options.now())
      return { secretHash }
    } catch (error) {
      if (!(error instanceof ViewsCatchingUpError)) this.options.onError(error)
      return REFUSALS.authUnavailable
    }
  }

  /**
   * The key that mail of a session is attributed to; null if the session has none, it is no longer valid, or its account
   * is suspended. Looked up for each mail, so that revoking a key takes effect in open sessions. Never rejects.
   */
  senderKey(user: AuthenticatedUser | null): Promise<SenderKey | Refusal | null> | null {
    if (user === null || user === 'anyone') return null
    return this.find(user.secretHash).catch((error: unknown) => {
      if (error instanceof ViewsCatchingUpError) return null
      this.options.onError(error)
      return REFUSALS.readModelUnavailable
    })
  }

  private async find(secretHash: string): Promise<SenderKey | null> {
    const { accounts, views, now } = this.options
    // In incomplete views a key may be missing or not revoked yet.
    const known = await views.readComplete('account-events', () => accounts.keyByHash(secretHash))
    if (known === null || known.account.suspendedAt !== null) return null
    const { key, member } = known
    if (!isValidSecret(key, secretHash, now()) || isOrphaned(key, member)) return null
    if (member !== null && !mayUseEnvironment(member, key.environment)) return null
    const { id: keyId, accountId, environment } = key
    return { keyId, accountId, environment }
  }
}

interface Mechanism {
  /** The challenges, which the client answers in turn. The first answer may come with the command. */
  prompts: readonly string[]
  /** The password in the answers; undefined if they can't be decoded. Usernames are ignored. */
  passwordIn: (answers: readonly string[]) => string | undefined
}

/** RFC 4616, draft-murchison-sasl-login. */
const PASSWORD_MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  ['PLAIN', { prompts: [''], passwordIn: ([answer = '']) => /^[^\0]*\0[^\0]*\0([^\0]*)$/.exec(answer)?.[1] }],
  ['LOGIN', { prompts: ['Username:', 'Password:'], passwordIn: ([, password]) => password }],
])

const TOKEN_MECHANISM: Mechanism = {
  prompts: [''],
  passwordIn: ([answer = '']) => /\x01auth=Bearer +([^\x01]+)\x01/i.exec(answer)?.[1],
}

/** XOAUTH2 is the mechanism of Google and Microsoft, OAUTHBEARER that of RFC 7628. */
const ALL_MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  ...PASSWORD_MECHANISMS,
  ['XOAUTH2', TOKEN_MECHANISM],
  ['OAUTHBEARER', TOKEN_MECHANISM],
])

/** RFC 4954, section 4. Tokens are long. */
const MAX_AUTH_LINE_BYTES = 12_288

/** The AUTH commands of a session. */
export class AuthExchange {
  /** Null before the client has authenticated. */
  user: AuthenticatedUser | null = null
  /** The command that awaits an answer, which is the next line; null if none does. */
  private current: { mechanism: Mechanism; answers: string[] } | null = null

  constructor(private readonly auth: Pick<SmtpAuth, 'authenticate' | 'mechanisms'>) {}

  /** Whether a response is awaited. */
  get isAwaitingResponse(): boolean {
    return this.current !== null
  }

  begin(command: string): MaybePromise<Answer> {
    if (this.user !== null) return REFUSALS.authenticatedAlready
    const [, name = '', initial, ...more] = command.trim().split(/ +/)
    const mechanism = this.auth.mechanisms.get(name.toUpperCase())
    if (mechanism === undefined) return REFUSALS.unknownMechanism
    if (more.length > 0) return REFUSALS.wrongAuth
    return this.proceed(mechanism, initial === undefined ? [] : [decode(initial)])
  }

  respondTo(line: string): MaybePromise<Answer> {
    const { current } = this
    this.current = null
    if (current === null) return REFUSALS.unknownCommand
    const response = line.trim()
    // RFC 4954, section 4.
    if (response === '*') return REFUSALS.authAborted
    return this.proceed(current.mechanism, [...current.answers, decode(response)])
  }

  private proceed(mechanism: Mechanism, answers: string[]): MaybePromise<Answer> {
    const prompt = mechanism.prompts[answers.length]
    if (prompt !== undefined) {
      this.current = { mechanism, answers }
      return `334 ${Buffer.from(prompt).toString('base64')}\r\n`
    }
    const password = mechanism.passwordIn(answers)
    if (password === undefined) return REFUSALS.wrongCredentials
    return this.auth.authenticate(password).then((user) => {
      if (user instanceof Refusal) return user
      this.user = user
      return REPLIES.authenticated
    })
  }
}

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString()
}

/** The sender's key if it shares the inbox's account and environment, else null. */
export function keyOfSender(
  sender: SenderKey | null,
  { accountId, environment }: Pick<Inbox, 'accountId' | 'environment'>,
): KeyId | null {
  return sender?.accountId === accountId && sender.environment === environment ? sender.keyId : null
}
