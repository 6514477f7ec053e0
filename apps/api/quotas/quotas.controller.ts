import { Body, Controller, Get, Param, Put } from '@nestjs/common'
import { IsInt, IsOptional, IsString, Min, ValidateIf } from 'class-validator'
import Type from 'typebox'
import { SCOPES } from '#libs/domain/account/access.js'
import {
  isMailQuota,
  maxOf,
  QUOTAS,
  quotasOf,
  resetOf,
  type Quota,
  type QuotaLimit,
  type QuotaScope,
} from '#libs/domain/account/quota.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { AccountQuotas } from '#libs/ports/read-model/account-quotas.js'
import { Plans } from '../access/key-lookup.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { AccountCommands } from '../accounts/account-commands.js'
import { invalid, noResource } from '../http/problems.js'
import { IsEnvironment } from '../http/rules.js'
import { Keys } from '../keys/keys.service.js'
import { Instance } from '../instance.js'
import { Describe, DescribeBody, DescribeProperty, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'
import { QUOTA } from './quota-schemas.js'
import { QuotaUse } from './quota-use.js'

const LIMIT = 'limit must be a whole number of at least 0, or null'

/** The body of PUT /v1/quotas/{quota}. */
@DescribeBody({ description: 'The limit of a quota.', example: { limit: 500 } })
export class SetQuota {
  @DescribeProperty(
    "At most that of the account's plan. Null removes the limit, so that of the plan applies.",
  )
  @ValidateIf(({ limit }: SetQuota) => limit !== null)
  @Min(0, { message: LIMIT })
  @IsInt({ message: LIMIT })
  limit!: number | null

  @DescribeProperty(
    'Limits the inboxes of this environment, instead of all of the account. Not for `webhooks`, `domains` and `members`.',
    {
      examples: ['staging'],
    },
  )
  @IsOptional()
  @IsEnvironment()
  environment?: string | null

  @DescribeProperty(
    'Limits the inboxes that this key created. Not together with `environment`, and only for the same quotas.',
    {
      examples: ['key_01jd6aycj4e7p8s9v1w3x5z7b2'],
    },
  )
  @IsOptional()
  @IsString({ message: 'key_id must be the id of a key' })
  key_id?: string | null
}

/** The quotas of the account. */
@Controller('v1/quotas')
@Tag('Accounts')
export class QuotasController {
  constructor(
    private readonly views: Views,
    private readonly plans: Plans,
    private readonly commands: AccountCommands,
    private readonly keys: Keys,
    private readonly quotas: AccountQuotas,
    private readonly use: QuotaUse,
    private readonly instance: Instance,
  ) {}

  @Get()
  @RequireScope(...SCOPES)
  @Describe({
    summary: 'List the quotas of the account',
    answer: {
      description: 'The quotas of the whole account, and those that are set for an environment or a key.',
      schema: Type.Array(QUOTA.schema),
    },
  })
  async listQuotas(@Caller() { accountId }: Principal) {
    const account = await this.commands.find(accountId)
    return this.answer(accountId, quotasOf(this.plans.of(account), account.quotas))
  }

  @Put(':quota')
  @RequireScope('admin')
  @Describe({
    summary: 'Set a quota',
    description:
      'Within the quota of the plan. It may be less than what is used: then nothing new is accepted until enough has ended. ' +
      'SMTP and other instances apply it within a second.',
    answer: { description: 'The quota.', schema: QUOTA.schema },
  })
  async setQuota(@Caller() principal: Principal, @Param('quota') name: string, @Body() body: SetQuota) {
    const quota = QUOTAS.find((each) => each === name)
    if (quota === undefined) throw noResource('quota', name)
    const { accountId, keyId: setBy } = principal
    const account = await this.commands.find(accountId)
    const plan = this.plans.of(account)
    const { limit } = body
    const wanted = { quota, scope: await this.scopeOf(principal, quota, body) }
    const command = { ...wanted, accountId, limit, plan, setBy, now: this.instance.now() }
    // Read before the change, so that a failure leaves nothing changed.
    const [answer] = await this.answer(accountId, [{ ...wanted, limit: limit ?? maxOf(plan, quota) }])
    await this.commands.execute({ account, key: null }, { type: 'SetQuota', ...command }, principal)
    this.quotas.forget(accountId)
    return answer
  }

  /** Throws invalid-request, or not-found for a key that the account does not have. */
  private async scopeOf(principal: Principal, quota: Quota, body: SetQuota): Promise<QuotaScope> {
    const { environment = null, key_id: keyId = null } = body
    if (!isMailQuota(quota) && (environment !== null || keyId !== null)) {
      const detail = `the quota ${quota} is of the whole account: leave out environment and key_id`
      throw invalid({ detail, pointer: environment === null ? '/key_id' : '/environment' })
    }
    if (keyId === null) return { environment, keyId: null }
    if (environment !== null) throw invalid({ detail: 'key_id excludes environment', pointer: '/key_id' })
    const { id } = await this.keys.get(principal, keyId)
    return { environment: null, keyId: id }
  }

  private async answer(accountId: AccountId, limits: readonly QuotaLimit[]) {
    const now = this.instance.now()
    const used = await this.views.readComplete('inbox-events', () => this.use.read(accountId, limits, now))
    return used.map(({ quota, scope, ...rest }) =>
      QUOTA.encode({ ...scope, name: quota, ...rest, resetsAt: resetOf(quota, now) }),
    )
  }
}
