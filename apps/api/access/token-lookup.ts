import type { InboxId } from '#libs/domain/ids/typeid.js'
import { asOf, type Inbox } from '#libs/domain/inbox/inbox.js'
import { inboxIdOfToken, isLive, type InboxToken } from '#libs/domain/inbox/token.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Views } from '../views.js'

/*
 * Finds the inbox token of a secret. The secret has the id of its inbox, so the row of the inbox is all that is read.
 */

/** A token that is valid, or was until its inbox ended. */
export interface KnownToken {
  inbox: Inbox
  token: InboxToken
}

/** Why a secret is not valid: it never was, or not any more. */
export interface UnknownToken {
  code: 'invalid-api-key' | 'revoked-api-key'
  detail: string
}

export class TokenLookup {
  constructor(
    private readonly views: Pick<Views, 'find' | 'inboxes'>,
    private readonly now: () => Date,
  ) {}

  /**
   * Null if the text does not have the form of a token. Rejects with ViewsCatchingUpError if the views may lack the
   * inbox, and with the errors of the views.
   */
  find(secret: string): Promise<KnownToken | UnknownToken> | null {
    const inboxId = inboxIdOfToken(secret)
    return inboxId === null ? null : this.findIn(inboxId, hashSecret(secret))
  }

  private async findIn(inboxId: InboxId, hash: string): Promise<KnownToken | UnknownToken> {
    const row = await this.views.find(inboxId, () => this.views.inboxes.inbox(inboxId))
    const now = this.now()
    const inbox = row && asOf(row.inbox, now)
    const token = inbox?.tokens.find((each) => each.hash === hash)
    if (!inbox || token === undefined) {
      return { code: 'invalid-api-key', detail: 'The inbox token is unknown.' }
    }
    // After the end of its inbox, requests with the token are answered 410, like those with a key.
    const at = inbox.state === 'active' ? now : new Date(inbox.endedAt.getTime() - 1)
    if (isLive(token, at)) return { inbox, token }
    const { id, revokedAt, expiresAt } = token
    const detail =
      revokedAt === null
        ? `The inbox token ${id} expired at ${expiresAt.toISOString()}.`
        : `The inbox token ${id} was revoked at ${revokedAt.toISOString()}.`
    return { code: 'revoked-api-key', detail }
  }
}
