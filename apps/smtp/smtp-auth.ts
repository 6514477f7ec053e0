import { isValidSecret } from '#libs/domain/account/account.js'
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

/** AUTH PLAIN and LOGIN (RFC 4954), as configured by `MAYFLY_SMTP_AUTH`. */
export class SmtpAuth {
  private readonly mode: 'any' | 'key' | 'off'

  constructor(private readonly options: AuthOptions) {
    const { smtpAuth, smtpHost } = options.settings
    this.mode = smtpAuth ?? (isLoopback(smtpHost) ? 'any' : 'off')
  }

  get isOff(): boolean {
    return this.mode === 'off'
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
   * The key that mail of a session is attributed to; null if the session has none, or it was revoked. Looked up for
   * each mail, so that revoking a key takes effect in open sessions. Never rejects.
   */
  senderKey(user: AuthenticatedUser | null): Promise<SenderKey | Refusal | null> | null {
    return user === null || user === 'anyone' ? null : this.currentKey(user.secretHash)
  }

  private async currentKey(secretHash: string): Promise<SenderKey | Refusal | null> {
    try {
      return await this.find(secretHash)
    } catch (error) {
      if (error instanceof ViewsCatchingUpError) return null
      this.options.onError(error)
      return REFUSALS.readModelUnavailable
    }
  }

  private async find(secretHash: string): Promise<SenderKey | null> {
    const { accounts, views, now } = this.options
    // In incomplete views a key may be missing or not revoked yet.
    const known = await views.readComplete('account-events', () => accounts.keyByHash(secretHash))
    if (known === null || !isValidSecret(known.key, secretHash, now())) return null
    const { id: keyId, accountId, environment } = known.key
    return { keyId, accountId, environment }
  }
}

/** A step of an AUTH command: a challenge to send, or the password that the client has sent. */
type AuthStep =
  { challenge: string; respond: (response: string) => AuthStep } | { password: string } | Refusal

/** The AUTH commands of a session. */
export class AuthExchange {
  /** Null before the client has authenticated. */
  user: AuthenticatedUser | null = null
  /** Handles the next line, which is a response and not a command; null if no response is awaited. */
  private respond: ((line: string) => AuthStep) | null = null

  constructor(private readonly auth: Pick<SmtpAuth, 'authenticate'>) {}

  /** Whether a response is awaited. */
  get isAwaitingResponse(): boolean {
    return this.respond !== null
  }

  begin(command: string): MaybePromise<Answer> {
    return this.user === null ? this.handle(firstStep(command)) : REFUSALS.authenticatedAlready
  }

  respondTo(line: string): MaybePromise<Answer> {
    return this.respond === null ? REFUSALS.unknownCommand : this.handle(this.respond(line))
  }

  private handle(step: AuthStep): MaybePromise<Answer> {
    this.respond = null
    if (step instanceof Refusal) return step
    if ('challenge' in step) {
      this.respond = step.respond
      return step.challenge
    }
    return this.auth.authenticate(step.password).then((user) => {
      if (user instanceof Refusal) return user
      this.user = user
      return REPLIES.authenticated
    })
  }
}

/**
 * The first step of `AUTH PLAIN` or `AUTH LOGIN` (RFC 4616, draft-murchison-sasl-login), with or without an initial
 * response. The response `*` cancels (RFC 4954, section 4). Usernames are ignored.
 */
function firstStep(command: string): AuthStep {
  const [, mechanism = '', initial, ...more] = command.trim().split(/ +/)
  switch (mechanism.toUpperCase()) {
    case 'PLAIN':
      if (more.length > 0) return REFUSALS.wrongAuthPlain
      return initial === undefined ? challenge('', readPlain) : readPlain(initial)
    case 'LOGIN':
      if (more.length > 0) return REFUSALS.wrongAuthLogin
      return initial === undefined ? challenge('Username:', readUsername) : readUsername()
    default:
      return REFUSALS.unknownMechanism
  }
}

function challenge(prompt: string, read: (response: string) => AuthStep): AuthStep {
  const respond = (line: string) => {
    const response = line.trim()
    return response === '*' ? REFUSALS.authAborted : read(response)
  }
  return { challenge: `334 ${Buffer.from(prompt).toString('base64')}\r\n`, respond }
}

function readPlain(response: string): AuthStep {
  const [, , password, ...more] = decode(response).split('\0')
  return password === undefined || more.length > 0 ? REFUSALS.wrongCredentials : { password }
}

function readUsername(): AuthStep {
  return challenge('Password:', (password) => ({ password: decode(password) }))
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
