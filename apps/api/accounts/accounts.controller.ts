import { Body, Controller, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { SCOPES } from '#libs/account/scope.js'
import type { Principal } from '../access/authenticator.js'
import { Mint, type Minting } from '../access/minting.js'
import { Caller, NeedsScope } from '../access/scope.guard.js'
import { ListPage, pageOf } from '../http/list-page.dto.js'
import { NoParameters } from '../http/no-parameters.dto.js'
import { newKeyJson } from '../keys/key-json.js'
import { accountJson } from './account-json.js'
import { ChangeAccount, OpenAccount } from './account-requests.dto.js'
import { Accounts } from './accounts.service.js'

/** Accounts: all of them for who operates the installation, its own for every key. */
@Controller('v1')
export class AccountsController {
  constructor(private readonly accounts: Accounts) {}

  @Post('accounts')
  @HttpCode(201)
  @NeedsScope('operator')
  async open(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: OpenAccount,
    @Query() _query: NoParameters,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { facts, key } = await this.accounts.open(principal, body, minting)
    void reply.header('location', `/v1/accounts/${facts.account.id}`)
    return { ...accountJson(facts), key: key === null ? null : newKeyJson(key) }
  }

  @Get('accounts')
  @NeedsScope('operator')
  async list(
    @Query() query: ListPage,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const page = await pageOf('acc', query, { request, reply }, (asked) => this.accounts.list(asked))
    const facts = await Promise.all(page.map((account) => this.accounts.factsOf(account)))
    return facts.map(accountJson)
  }

  @Get('accounts/:accountId')
  @NeedsScope('operator')
  async get(@Param('accountId') accountId: string, @Query() _query: NoParameters) {
    return accountJson(await this.accounts.get(accountId))
  }

  @Patch('accounts/:accountId')
  @NeedsScope('operator')
  async change(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('accountId') accountId: string,
    @Body() body: ChangeAccount,
    @Query() _query: NoParameters,
  ) {
    const { facts, key } = await this.accounts.change(principal, accountId, body, minting)
    return { ...accountJson(facts), key: key === null ? null : newKeyJson(key) }
  }

  @Get('account')
  @NeedsScope(...SCOPES)
  async own(@Caller() { accountId }: Principal, @Query() _query: NoParameters) {
    return accountJson(await this.accounts.get(accountId))
  }
}
