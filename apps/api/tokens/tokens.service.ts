import { Injectable } from '@nestjs/common'
import { isId } from '#libs/domain/ids/typeid.js'
import type { TokenCommand } from '#libs/domain/inbox/decide.js'
import { makeTokenSecret, TOKEN_BYTES, type TokenAccess, type TokenId } from '#libs/domain/inbox/token.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Principal } from '../access/principal.js'
import { noResource } from '../http/problems.js'
import type { Minting } from '../idempotency/minting.js'
import { Inboxes, type OpenInbox } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'

@Injectable()
export class InboxTokens {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly instance: Instance,
  ) {}

  /**
   * Resolves with the token and its secret once it can be used. It is valid for `lifeMs`, or until its inbox expires if
   * that is null. Throws invalid-request, busy, and the 410 of an ended inbox.
   */
  async issue(
    principal: Principal,
    minting: Minting,
    open: OpenInbox,
    { access, lifeMs }: { access: TokenAccess; lifeMs: number | null },
  ) {
    const { id: inboxId } = open.inbox
    const tokenId = minting.id('tok')
    const secret = makeTokenSecret(inboxId, minting.bytes(TOKEN_BYTES))
    const changed = await this.change(principal, open, {
      ...{ type: 'IssueToken', inboxId, keyId: principal.keyId, tokenId, now: this.instance.now() },
      ...{ hash: hashSecret(secret), access, lifeMs },
    })
    return { ...changed, secret }
  }

  /**
   * Resolves once the token no longer works on this instance. Throws not-found, busy, and the 410 of an ended inbox.
   */
  async revoke(
    principal: Principal,
    open: OpenInbox,
    tokenId: string,
  ): Promise<{ id: TokenId; revokedAt: Date }> {
    if (!isId('tok', tokenId)) throw noResource('inbox token', tokenId)
    const about = { inboxId: open.inbox.id, keyId: principal.keyId, tokenId, now: this.instance.now() }
    const { token } = await this.change(principal, open, { type: 'RevokeToken', ...about })
    const { id, revokedAt } = token
    if (revokedAt === null) throw new Error(`the token ${tokenId} is not revoked`)
    return { id, revokedAt }
  }

  private async change(principal: Principal, open: OpenInbox, command: TokenCommand) {
    const { inbox } = await this.inboxes.change(principal, open, () => command)
    const token = inbox.tokens.find(({ id }) => id === command.tokenId)
    if (token === undefined) throw new Error(`the token ${command.tokenId} is not in its inbox`)
    return { inbox, token }
  }
}
