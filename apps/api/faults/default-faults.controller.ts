import { Body, Controller, Delete, Get, Param, Put } from '@nestjs/common'
import { defaultFaultsOf } from '#libs/domain/account/account.js'
import type { Fault } from '#libs/domain/inbox/fault.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { AccountCommands } from '../accounts/account-commands.js'
import { notFound } from '../http/problems.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { listSchema } from '../openapi/dto-schema.js'
import { Views } from '../views.js'
import { faultJson, readFaults, SetFaults } from './fault-requests.dto.js'

const ANSWER = { description: 'The faults of new inboxes.', schema: listSchema(SetFaults) }

/** The faults on purpose that the new inboxes of an environment get. */
@Controller('v1/environments/:name/faults')
@Tag('Inboxes')
export class DefaultFaultsController {
  constructor(
    private readonly views: Views,
    private readonly commands: AccountCommands,
    private readonly instance: Instance,
  ) {}

  @Put()
  @RequireScope('admin')
  @Describe({
    id: 'setEnvironmentFaults',
    summary: 'Set the faults of new inboxes',
    description:
      'Every inbox that is created in the environment from now on gets these faults. Others keep theirs. A `seed` is ' +
      'combined with the id of each inbox, so that not all inboxes lose the same mail.',
    answer: ANSWER,
  })
  async put(@Caller() principal: Principal, @Param('name') name: string, @Body() body: SetFaults) {
    return this.set(principal, name, readFaults(body))
  }

  @Get()
  @RequireScope('admin')
  @Describe({
    id: 'getEnvironmentFaults',
    summary: 'Read the faults of new inboxes',
    answer: ANSWER,
  })
  async get(@Caller() principal: Principal, @Param('name') name: string) {
    return defaultFaultsOf(await this.find(principal, name), name).map(faultJson)
  }

  @Delete()
  @RequireScope('admin')
  @Describe({
    id: 'removeEnvironmentFaults',
    summary: 'Remove the faults of new inboxes',
    answer: { ...ANSWER, description: 'An empty list.' },
  })
  async remove(@Caller() principal: Principal, @Param('name') name: string) {
    return this.set(principal, name, [])
  }

  private async set(principal: Principal, environment: string, faults: readonly Fault[]) {
    const { accountId, keyId: setBy } = principal
    const account = await this.find(principal, environment)
    const command = { accountId, environment, faults, setBy, now: this.instance.now() }
    await this.commands.execute({ account, key: null }, { type: 'SetDefaultFaults', ...command }, principal)
    return faults.map(faultJson)
  }

  /** The account. Throws not-found if none of its keys is for the environment. */
  private async find({ accountId }: Principal, environment: string) {
    const keys = await this.views.readAccounts((accounts) => accounts.activeKeys(accountId))
    if (!keys.some((key) => key.environment === environment)) {
      throw notFound(`There is no environment ${environment.slice(0, 60)}: no key of the account is for it.`)
    }
    return this.commands.find(accountId)
  }
}
