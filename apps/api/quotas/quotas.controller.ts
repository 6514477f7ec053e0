import { Body, Controller, Get, Param, Put } from '@nestjs/common'
import { IsInt, Min, ValidateIf } from 'class-validator'
import Type from 'typebox'
import { QUOTAS, quotasOf, SCOPES, type Quota } from '#libs/domain/account/access.js'
import type { Account } from '#libs/domain/account/account.js'
import { object, plain, text } from '#libs/domain/event-sourcing/declare.js'
import { AccountQuotas } from '#libs/ports/read-model/account-quotas.js'
import { Count, IdOf, OneOf, orNull, time } from '#libs/runtime/resource.js'
import { Plans } from '../access/key-lookup.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { AccountCommands } from '../accounts/account-commands.js'
import { noResource } from '../http/problems.js'
import { Instance } from '../instance.js'
import { Describe, DescribeBody, DescribeProperty, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'

const QUOTA = object(
  {
    name: plain(
      OneOf(
        QUOTAS,
        "`inboxes`: active inboxes. `stored-bytes`: bytes in the sources of active inboxes' messages.",
      ),
    ),
    environment: orNull(text, 'Null: of the whole account.'),
    keyId: orNull(plain(IdOf('key', 'The key whose use counts.')), 'Null: of all keys.'),
    limit: plain(Count('The maximum.')),
    used: plain(Count('What counts now.')),
    resetsAt: orNull(time('When what was used counts no more.'), 'Null: what ends counts no more.'),
  },
  {
    $id: 'Quota',
    description: 'What the account may use, and uses, of something.',
    examples: [{ name: 'inboxes', environment: null, key_id: null, limit: 500, used: 12, resets_at: null }],
  },
)

const LIMIT = 'limit must be a whole number of at least 0, or null'

/** The body of PUT /v1/quotas/{name}. */
@DescribeBody({ description: 'The maximum of a quota.', example: { limit: 500 } })
export class SetQuota {
  @DescribeProperty("At most that of the account's plan. Null for that.")
  @ValidateIf(({ limit }: SetQuota) => limit !== null)
  @Min(0, { message: LIMIT })
  @IsInt({ message: LIMIT })
  limit!: number | null
}

/** The quotas of the account. */
@Controller('v1/quotas')
@Tag('Accounts')
export class QuotasController {
  constructor(
    private readonly views: Views,
    private readonly plans: Plans,
    private readonly commands: AccountCommands,
    private readonly quotas: AccountQuotas,
    private readonly instance: Instance,
  ) {}

  @Get()
  @RequireScope(...SCOPES)
  @Describe({
    summary: 'List the quotas of the account',
    answer: { description: 'The quotas.', schema: Type.Array(QUOTA.schema) },
  })
  async listQuotas(@Caller() { accountId }: Principal) {
    const list = await this.listOf(await this.commands.find(accountId))
    return list.map(QUOTA.encode)
  }

  @Put(':quota')
  @RequireScope('admin')
  @Describe({
    summary: 'Set a quota of the account',
    description:
      'Within the quota of the plan. It may be less than what is used: then nothing new is accepted until enough has ended. ' +
      'SMTP and other instances apply it within a second.',
    answer: { description: 'The quota.', schema: QUOTA.schema },
  })
  async setQuota(@Caller() principal: Principal, @Param('quota') name: string, @Body() { limit }: SetQuota) {
    const quota = QUOTAS.find((each) => each === name)
    if (quota === undefined) throw noResource('quota', name)
    const { accountId, keyId: setBy } = principal
    const account = await this.commands.find(accountId)
    const plan = this.plans.of(account)
    const command = { accountId, quota, limit, plan, setBy, now: this.instance.now() }
    await this.commands.execute({ account, key: null }, { type: 'SetQuota', ...command }, principal)
    this.quotas.forget(accountId)
    const list = await this.listOf(await this.commands.find(accountId))
    return list.filter((each) => each.name === quota).map(QUOTA.encode)[0]
  }

  private async listOf(account: Account) {
    const { inboxes } = this.views
    const used = await this.views.readComplete('inbox-events', () => inboxes.accountUse(account.id))
    const limits = quotasOf(this.plans.of(account), account.quotas)
    return QUOTAS.map((name: Quota) => ({
      ...{ name, environment: null, keyId: null },
      ...{ limit: limits[name], used: used[name], resetsAt: null },
    }))
  }
}
