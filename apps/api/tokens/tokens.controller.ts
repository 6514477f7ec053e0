import { Body, Controller, Delete, Get, Param, Post } from '@nestjs/common'
import Type from 'typebox'
import { isId } from '#libs/domain/ids/typeid.js'
import { decide, type Refusal, type TokenCommand } from '#libs/domain/inbox/decide.js'
import { parseLifespan } from '#libs/domain/inbox/new-inbox.js'
import {
  isLive,
  makeTokenSecret,
  MAX_TOKENS,
  TOKEN_BYTES,
  type InboxToken as Token,
} from '#libs/domain/inbox/token.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import { type Principal, Caller, RequireScope } from '../access/principal.js'
import { invalid, notFound, type Problem } from '../http/problems.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { hasEnded, Inboxes, type OpenInbox } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import {
  CreateInboxToken,
  InboxToken,
  InboxTokenWithSecret,
  RevokedInboxToken,
  tokenJson,
} from './token-schemas.js'

/** Issues, lists and revokes the tokens of an inbox, under both of its paths. */
@Controller(['v1/inboxes/:inboxId/tokens', 'v1/emails/:inboxId/tokens'])
@Tag('Inboxes')
export class TokensController {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly instance: Instance,
  ) {}

  @Post()
  @RequireScope('inboxes')
  @Describe({
    id: 'createInboxToken',
    summary: 'Issue a token for an inbox',
    description:
      'A bearer token for a person or a program that must not have the API key. It reads this inbox, its messages and its ' +
      `events, and nothing else. An inbox has at most ${MAX_TOKENS} valid tokens. A token does not replace the password of ` +
      'a protected inbox.',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: { description: 'The token.', schema: InboxTokenWithSecret },
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async create(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('inboxId') inboxId: string,
    @Body() { access, expires_in: life }: CreateInboxToken,
  ) {
    const open = await this.inboxes.openContent(principal, inboxId)
    const { id } = open.inbox
    const tokenId = minting.id('tok')
    const secret = makeTokenSecret(id, minting.bytes(TOKEN_BYTES))
    const lifeMs = life === undefined ? null : (parseLifespan(life)?.ms ?? null)
    const { inbox, token } = await this.change(principal, open, {
      ...{ type: 'IssueToken', inboxId: id, keyId: principal.keyId, tokenId, now: this.instance.now() },
      ...{ hash: hashSecret(secret), access, lifeMs },
    })
    return { ...tokenJson(token, inbox), token: secret }
  }

  @Get()
  @RequireScope('inboxes')
  @Describe({
    id: 'listInboxTokens',
    summary: 'List the tokens of an inbox',
    description: 'Those that are valid, oldest first, without their secrets.',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: { description: 'The tokens.', schema: Type.Array(InboxToken) },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async list(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    const now = this.instance.now()
    return inbox.tokens.filter((token) => isLive(token, now)).map((token) => tokenJson(token, inbox))
  }

  @Delete(':tokenId')
  @RequireScope('inboxes')
  @Describe({
    id: 'revokeInboxToken',
    summary: 'Revoke a token of an inbox',
    description:
      'It stops working at once, and its waits and streams end within a second. A repeat gets the same answer.',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: { description: 'When it was revoked.', schema: RevokedInboxToken },
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async revoke(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Param('tokenId') tokenId: string,
  ) {
    const open = await this.inboxes.openContent(principal, inboxId)
    if (!isId('tok', tokenId)) throw noToken(tokenId)
    const about = { inboxId: open.inbox.id, keyId: principal.keyId, tokenId, now: this.instance.now() }
    const { token } = await this.change(principal, open, { type: 'RevokeToken', ...about })
    if (token.revokedAt === null) throw new Error(`the token ${tokenId} is not revoked`)
    return { id: token.id, revoked_at: token.revokedAt.toISOString() }
  }

  /** Resolves with the token and its inbox once the command's event is visible. */
  private async change(
    principal: Principal,
    open: OpenInbox,
    command: TokenCommand,
  ): Promise<Pick<OpenInbox, 'inbox'> & { token: Token }> {
    const { inbox } = await this.inboxes.change(principal, open, (current) => {
      const { events, refusal } = decide({ inbox: current, message: null }, command)
      if (refusal !== null) throw problemOf(refusal, command)
      return events
    })
    const token = inbox.tokens.find(({ id }) => id === command.tokenId)
    if (token === undefined) throw new Error(`the token ${command.tokenId} is not in its inbox`)
    return { inbox, token }
  }
}

function problemOf(refusal: Refusal, { tokenId }: TokenCommand): Problem {
  if (refusal.code === 'inbox-ended') return hasEnded(refusal.inbox)
  if (refusal.code === 'outlives-inbox') {
    const end = refusal.expiresAt.toISOString()
    return invalid({ detail: `expires_in may end at most at ${end}, with the inbox`, pointer: '/expires_in' })
  }
  if (refusal.code === 'too-many-tokens') {
    const detail = `an inbox may have ${MAX_TOKENS} valid tokens: revoke one first`
    return invalid({ detail, pointer: '' })
  }
  return noToken(tokenId)
}

function noToken(id: string): Problem {
  return notFound(`There is no inbox token ${id.slice(0, 60)}.`)
}
