import { isInForce } from '#libs/domain/account/account.js'
import { hashSecret } from '#libs/domain/account/secret-hash.js'
import { isLoopback } from '#libs/runtime/config/smtp-settings.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import { ViewsCatchingUpError, type ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries } from '#libs/ports/read-model/queries.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import { REFUSALS, type Refusal } from './replies.js'

/** The API key that a client authenticated with. */
export interface SenderKey {
  keyId: KeyId
  accountId: AccountId
  environment: string
}

/**
 * What a session remembers of AUTH: the hash of an API key, or 'anyone' if credentials are accepted unchecked. Never
 * the credentials themselves.
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

/** AUTH PLAIN and LOGIN (RFC 4954) as `MAYFLY_SMTP_AUTH` sets them. */
export class SmtpAuth {
  private readonly mode: 'any' | 'key' | 'off'

  constructor(private readonly options: AuthOptions) {
    const { smtpAuth, smtpHost } = options.settings
    this.mode = smtpAuth ?? (isLoopback(smtpHost) ? 'any' : 'off')
  }

  get isOff(): boolean {
    return this.mode === 'off'
  }

  /** Whether a connection is offered AUTH. An API key must not cross a network in the clear. */
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
   * The key that mail of this session is attributed to; null if the session has none, or it was revoked since. Looked
   * up for each mail, so that revoking a key takes effect in open sessions. Never rejects.
   */
  async senderKey(user: AuthenticatedUser | null): Promise<SenderKey | Refusal | null> {
    if (user === null || user === 'anyone') return null
    try {
      return await this.find(user.secretHash)
    } catch (error) {
      if (error instanceof ViewsCatchingUpError) return null
      this.options.onError(error)
      return REFUSALS.readModelUnavailable
    }
  }

  private async find(secretHash: string): Promise<SenderKey | null> {
    const { accounts, views, now } = this.options
    // In incomplete views a key may be missing, or not be revoked yet.
    const known = await views.readComplete('account-events', () => accounts.keyByHash(secretHash))
    if (known === null || !isInForce(known.key, secretHash, now())) return null
    const { id: keyId, accountId, environment } = known.key
    return { keyId, accountId, environment }
  }
}

/** The sender's key if it shares the inbox's account and environment, else null. */
export function keyOfSender(
  sender: SenderKey | null,
  { accountId, environment }: Pick<Inbox, 'accountId' | 'environment'>,
): KeyId | null {
  return sender?.accountId === accountId && sender.environment === environment ? sender.keyId : null
}
