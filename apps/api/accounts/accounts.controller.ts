import { Body, Controller, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { SCOPES } from '#libs/domain/account/access.js'
import { type Principal, Caller, RequireScope } from '../access/principal.js'
import { Reply, withLocation } from '../http/headers.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { Describe, Tag } from '../openapi/describe.js'
import { KeyWithSecret, newKeyJson } from '../keys/key-schemas.js'
import { IssueKey } from '../keys/key-requests.dto.js'
import { AS_OF_PROBLEMS, AsOf, PastStates } from '../audit/past-states.service.js'
import { Keys } from '../keys/keys.service.js'
import { Account, AccountWithKey, accountJson, accountWithKeyJson } from './account-schemas.js'
import { ChangeAccount, OpenAccount, SetSignIn } from './account-requests.dto.js'
import { Accounts } from './accounts.service.js'

/** All accounts, for operators, and for every key its own account. */
@Controller('v1')
@Tag('Accounts')
export class AccountsController {
  constructor(
    private readonly accounts: Accounts,
    private readonly keys: Keys,
    private readonly past: PastStates,
  ) {}

  @Post('accounts')
  @RequireScope('operator')
  @Describe({
    summary: 'Open an account',
    description: 'If the plan has API access, the account gets its first key, with the scope `admin`.',
    answer: { description: 'The account.', schema: AccountWithKey, headers: ['Location'] },
  })
  async openAccount(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: OpenAccount,
    @Reply() reply: FastifyReply,
  ) {
    const opened = await this.accounts.open(principal, body, minting)
    return withLocation(reply, '/v1/accounts', accountWithKeyJson(opened))
  }

  @Get('accounts')
  @RequireScope('operator')
  @Describe({
    summary: 'List accounts',
    answer: { description: 'A page of accounts.', schema: Type.Array(Account), headers: ['Link'] },
  })
  async listAccounts(@Query() query: ListPage, @Reply() reply: FastifyReply) {
    const page = await pageOf('acc', query, reply, (listQuery) => this.accounts.list(listQuery))
    const shown = await Promise.all(page.map((account) => this.accounts.valuesOf(account)))
    return shown.map(accountJson)
  }

  @Get('accounts/:accountId')
  @RequireScope('operator')
  @Describe({ summary: 'Read an account', answer: { description: 'The account.', schema: Account } })
  async getAccount(@Param('accountId') accountId: string) {
    return accountJson(await this.accounts.get(accountId))
  }

  @Patch('accounts/:accountId')
  @RequireScope('operator')
  @Describe({
    summary: "Change an account's plan or limits",
    description: 'If the account then has API access but no key with the scope `admin`, it gets one.',
    answer: { description: 'The account.', schema: AccountWithKey },
  })
  async changeAccount(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('accountId') accountId: string,
    @Body() body: ChangeAccount,
  ) {
    return accountWithKeyJson(await this.accounts.change(principal, accountId, body, minting))
  }

  @Post('accounts/:accountId/suspend')
  @HttpCode(200)
  @RequireScope('operator')
  @Describe({
    summary: 'Suspend an account',
    description:
      'Its keys, inbox tokens and sessions of the console are then answered 403 `account-suspended`, and mail to its inboxes is refused with 550. It takes effect on every instance within a second. Nothing is erased, and inboxes still expire. A repeat changes nothing.',
    answer: { description: 'The account.', schema: Account },
  })
  async suspendAccount(@Caller() principal: Principal, @Param('accountId') accountId: string) {
    return accountJson(await this.accounts.changeAccess(principal, accountId, 'SuspendAccount'))
  }

  @Post('accounts/:accountId/resume')
  @HttpCode(200)
  @RequireScope('operator')
  @Describe({
    summary: 'Resume a suspended account',
    description: 'A repeat changes nothing.',
    answer: { description: 'The account.', schema: Account },
  })
  async resumeAccount(@Caller() principal: Principal, @Param('accountId') accountId: string) {
    return accountJson(await this.accounts.changeAccess(principal, accountId, 'ResumeAccount'))
  }

  @Post('accounts/:accountId/close')
  @HttpCode(200)
  @RequireScope('operator')
  @Describe({
    summary: 'Close an account for good',
    description:
      'It is suspended at once. Within seconds, or minutes for thousands of inboxes, its keys are revoked, its members, domains and webhooks are removed, and its inboxes are deleted with all their mail; then `erased_at` says when. It cannot be undone. A repeat changes nothing.',
    answer: { description: 'The account.', schema: Account },
  })
  async closeAccount(@Caller() principal: Principal, @Param('accountId') accountId: string) {
    return accountJson(await this.accounts.changeAccess(principal, accountId, 'CloseAccount'))
  }

  @Post('accounts/:accountId/keys')
  @RequireScope('operator')
  @Describe({
    summary: 'Issue a key for an account',
    description: 'For example, for an account that has lost its keys.',
    answer: { description: 'The key, with its secret.', schema: KeyWithSecret, headers: ['Location'] },
  })
  async issueAccountKey(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('accountId') accountId: string,
    @Body() body: IssueKey,
    @Reply() reply: FastifyReply,
  ) {
    const issued = await this.keys.issue(principal, accountId, body, minting)
    return withLocation(reply, '/v1/keys', newKeyJson(issued))
  }

  @Get('account')
  @RequireScope(...SCOPES)
  @Describe({
    summary: "Read the key's own account",
    description: 'With `as_of`, `limits` are those that the plan has now.',
    answer: { description: 'The account.', schema: Account, headers: ['Mayfly-As-Of'] },
    problems: AS_OF_PROBLEMS,
  })
  async getOwnAccount(
    @Caller() principal: Principal,
    @Query() { as_of: asOf }: AsOf,
    @Reply() reply: FastifyReply,
  ) {
    if (asOf === undefined) return accountJson(await this.accounts.get(principal.accountId))
    const { account, activeKeys } = await this.past.account(principal, asOf, reply)
    return accountJson(await this.accounts.valuesOf(account, activeKeys))
  }

  @Patch('account')
  @RequireScope('admin')
  @Describe({
    summary: 'Set how people sign in',
    description:
      'With `provider`, sessions of the console that an identity provider has not identified end within a second, and links and keys start none. An owner must have signed in with a provider first. Keys still work for the API, so one with the scope `admin` can set `any` again.',
    answer: { description: 'The account.', schema: Account },
  })
  async changeOwnAccount(@Caller() principal: Principal, @Body() body: SetSignIn) {
    return accountJson(await this.accounts.setSignIn(principal, body))
  }
}
