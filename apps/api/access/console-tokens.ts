import Type from 'typebox'
import { isId, type AccountId, type ConsoleSessionId } from '#libs/domain/ids/typeid.js'
import type { DerivedKeys } from '#libs/ports/key-vault/master-key.js'
import { SignedTokens } from './signed-tokens.js'

/*
 * The bearer tokens that the console gets for its session. A token names the session, so the view of its account is all
 * that is read.
 */

export interface SessionIn {
  accountId: AccountId
  sessionId: ConsoleSessionId
  environment: string
}

const PREFIX = 'mfs_'
const TOKEN_MS = 10 * 60_000

const PAYLOAD = Type.Object({
  account: Type.String(),
  session: Type.String(),
  environment: Type.String(),
})

export class ConsoleTokens {
  private readonly tokens

  constructor(
    secrets: DerivedKeys,
    private readonly now: () => Date,
  ) {
    this.tokens = new SignedTokens(secrets, 'console session', PAYLOAD)
  }

  /** A token for ten minutes. It is not valid after the end of its session. */
  issue({ accountId, sessionId, environment }: SessionIn): { token: string; expiresAt: Date } {
    const expiresAt = new Date(this.now().getTime() + TOKEN_MS)
    const payload = { account: accountId, session: sessionId, environment }
    return { token: PREFIX + this.tokens.sign(payload, expiresAt), expiresAt }
  }

  /** Null if the text does not have the form of a token; `expired` if the token is not, or no longer, valid. */
  read(secret: string): SessionIn | 'expired' | null {
    if (!secret.startsWith(PREFIX)) return null
    const payload = this.tokens.verify(secret.slice(PREFIX.length), this.now())
    if (payload === null) return 'expired'
    const { account, session, environment } = payload
    if (!isId('acc', account) || !isId('ses', session)) return 'expired'
    return { accountId: account, sessionId: session, environment }
  }
}
