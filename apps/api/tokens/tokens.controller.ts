import { Body, Controller, Delete, Get, Param, Post } from '@nestjs/common'
import Type from 'typebox'
import { isLive, MAX_TOKENS } from '#libs/domain/inbox/token.js'
import { type Principal, Caller, RequireScope } from '../access/principal.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import {
  CreateInboxToken,
  InboxToken,
  InboxTokenWithSecret,
  issuedTokenJson,
  RevokedInboxToken,
  revokedTokenJson,
  tokenJson,
} from './token-schemas.js'
import { InboxTokens } from './tokens.service.js'
import { readLifespan } from '../http/rules.js'

/** Issues, lists and revokes the tokens of an inbox, under both of its paths. */
@Controller(['v1/inboxes/:inboxId/tokens', 'v1/emails/:inboxId/tokens'])
@Tag('Inboxes')
export class TokensController {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly tokens: InboxTokens,
    private readonly instance: Instance,
  ) {}

  @Post()
  @RequireScope('inboxes')
  @Describe({
    summary: 'Issue a token for an inbox',
    description:
      'A bearer token for a person or a program that must not have the API key. It reads this inbox, its messages and its ' +
      `events, and nothing else. An inbox has at most ${MAX_TOKENS} valid tokens. A token does not replace the password of ` +
      'a protected inbox.',
    answer: { description: 'The token.', schema: InboxTokenWithSecret },
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async createInboxToken(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('inboxId') inboxId: string,
    @Body() { access, expires_in: life }: CreateInboxToken,
  ) {
    const open = await this.inboxes.openContent(principal, inboxId)
    const lifeMs = life === undefined ? null : readLifespan(life).ms
    const { inbox, token, secret } = await this.tokens.issue(principal, minting, open, { access, lifeMs })
    return issuedTokenJson(token, inbox, secret)
  }

  @Get()
  @RequireScope('inboxes', 'read')
  @Describe({
    summary: 'List the tokens of an inbox',
    description: 'Those that are valid, oldest first, without their secrets.',
    answer: { description: 'The tokens.', schema: Type.Array(InboxToken) },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async listInboxTokens(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const now = this.instance.now()
    return inbox.tokens.filter((token) => isLive(token, now)).map((token) => tokenJson(token, inbox))
  }

  @Delete(':tokenId')
  @RequireScope('inboxes')
  @Describe({
    summary: 'Revoke a token of an inbox',
    description:
      'It stops working at once, and its waits and streams end within a second. A repeat gets the same answer.',
    answer: { description: 'When it was revoked.', schema: RevokedInboxToken },
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async revokeInboxToken(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('tokenId') tokenId: string,
  ) {
    const open = await this.inboxes.openContent(principal, inboxId)
    return revokedTokenJson(await this.tokens.revoke(principal, open, tokenId))
  }
}
