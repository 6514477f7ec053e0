import Type from 'typebox'
import { isId, type AccountId, type ConsoleSessionId } from '#libs/domain/ids/typeid.js'
import type { DerivedKeys } from '#libs/ports/key-vault/master-key.js'
import { isTransient } from '../http/problems.js'
import { isSignedIn, type KnownKeys, type KnownSession } from './key-lookup.js'
import { SignedTokens } from './signed-tokens.js'

/*
 * The bearer tokens that the console gets for its session. A token names the session, so the view of its account is all
 * that is read.
 */

/** A session of the console, and the environment that it is used for. */
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

export interface ConsoleTokensOptions {
  secrets: DerivedKeys
  keys: Pick<KnownKeys, 'session'>
  now: () => Date
}

export class ConsoleTokens {
  private readonly tokens

  constructor(private readonly options: ConsoleTokensOptions) {
    this.tokens = new SignedTokens(options.secrets, 'console session', PAYLOAD)
  }

  /** A token for ten minutes. It is not valid after the end of its session. */
  issue({ accountId, sessionId, environment }: SessionIn): { token: string; expiresAt: Date } {
    const expiresAt = new Date(this.options.now().getTime() + TOKEN_MS)
    const payload = { account: accountId, session: sessionId, environment }
    return { token: PREFIX + this.tokens.sign(payload, expiresAt), expiresAt }
  }

  /** Null if the text does not have the form of a token; `expired` if the token is not, or no longer, valid. */
  read(secret: string): SessionIn | 'expired' | null {
    if (!secret.startsWith(PREFIX)) return null
    const verified = this.tokens.verify(secret.slice(PREFIX.length), this.options.now())
    if (verified === null) return 'expired'
    const { account, session, environment } = verified.payload
    if (!isId('acc', account) || !isId('ses', session)) return 'expired'
    return { accountId: account, sessionId: session, environment }
  }

  /** Null if the session has ended. Rejects as the lookup of a key does. */
  async find({ accountId, sessionId }: Omit<SessionIn, 'environment'>): Promise<KnownSession | null> {
    const known = await this.options.keys.session(accountId, sessionId)
    return known !== null && isSignedIn(known, this.options.now()) ? known : null
  }

  /** Whether the session has ended for certain: false if that can't be found out now. */
  async hasEnded(session: Omit<SessionIn, 'environment'>): Promise<boolean> {
    try {
      return (await this.find(session)) === null
    } catch (error) {
      if (isTransient(error)) return false
      throw error
    }
  }
}
