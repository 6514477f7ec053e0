import { Body, Controller, Delete, Get, Param, Put } from '@nestjs/common'
import { defaultFaultsOf } from '#libs/domain/account/account.js'
import { faults, type Fault } from '#libs/domain/inbox/fault.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { AccountCommands } from '../accounts/account-commands.js'
import { notFound } from '../http/problems.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { listSchema } from '../openapi/dto-schema.js'
import { Views } from '../views.js'
import { readFaults, SetFaults } from './fault-requests.dto.js'

const ANSWER = { description: 'All faults of the inbox.', schema: listSchema(SetFaults) }
const NEW_INBOXES = { ...ANSWER, description: 'The faults of new inboxes.' }

/** The faults on purpose of an inbox, under both of its paths. */
@Controller(['v1/inboxes/:inboxId/faults', 'v1/emails/:inboxId/faults'])
@Tag('Inboxes')
export class FaultsController {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly instance: Instance,
  ) {}

  @Put()
  @RequireScope('inboxes')
  @Describe({
    summary: 'Set the faults of an inbox',
    description:
      'Makes the inbox misbehave on purpose towards the senders of its mail, to test how they handle it. Replaces all ' +
      'faults. Their attempts are counted from then on; setting the same faults again, with the same seeds, changes nothing.',
    answer: ANSWER,
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async setInboxFaults(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Body() body: SetFaults,
  ) {
    return this.set(principal, inboxId, readFaults(body))
  }

  @Get()
  @RequireScope('inboxes', 'read')
  @Describe({
    summary: 'Read the faults of an inbox',
    answer: ANSWER,
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async getInboxFaults(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    return faults.encode(inbox.faults)
  }

  @Delete()
  @RequireScope('inboxes')
  @Describe({
    summary: 'Remove the faults of an inbox',
    answer: { ...ANSWER, description: 'An empty list.' },
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async removeInboxFaults(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    return this.set(principal, inboxId, [])
  }

  /** Resolves once mail is subject to them. */
  private async set(principal: Principal, inboxId: string, wanted: readonly Fault[]) {
    const open = await this.inboxes.openContent(principal, inboxId)
    const { inbox } = await this.inboxes.change(principal, open, ({ id }) => {
      const about = { inboxId: id, keyId: principal.keyId, now: this.instance.now() }
      return { type: 'SetFaults', ...about, faults: wanted }
    })
    return faults.encode(inbox.faults)
  }
}

/** The faults on purpose that the new inboxes of an environment get. */
@Controller('v1/environments/:name/faults')
@Tag('Inboxes')
@RequireScope('admin')
export class DefaultFaultsController {
  constructor(
    private readonly views: Views,
    private readonly commands: AccountCommands,
    private readonly instance: Instance,
  ) {}

  @Put()
  @Describe({
    summary: 'Set the faults of new inboxes',
    description:
      'Every inbox that is created in the environment from now on gets these faults. Others keep theirs. A `seed` is ' +
      'combined with the id of each inbox, so that not all inboxes lose the same mail.',
    answer: NEW_INBOXES,
  })
  async setEnvironmentFaults(
    @Caller() principal: Principal,
    @Param('name') name: string,
    @Body() body: SetFaults,
  ) {
    return this.set(principal, name, readFaults(body))
  }

  @Get()
  @Describe({ summary: 'Read the faults of new inboxes', answer: NEW_INBOXES })
  async getEnvironmentFaults(@Caller() principal: Principal, @Param('name') name: string) {
    return faults.encode(defaultFaultsOf(await this.find(principal, name), name))
  }

  @Delete()
  @Describe({
    summary: 'Remove the faults of new inboxes',
    answer: { ...NEW_INBOXES, description: 'An empty list.' },
  })
  async removeEnvironmentFaults(@Caller() principal: Principal, @Param('name') name: string) {
    return this.set(principal, name, [])
  }

  private async set(principal: Principal, environment: string, wanted: readonly Fault[]) {
    const { accountId, keyId: setBy } = principal
    const account = await this.find(principal, environment)
    const command = { accountId, environment, faults: wanted, setBy, now: this.instance.now() }
    await this.commands.execute({ account, key: null }, { type: 'SetDefaultFaults', ...command }, principal)
    return faults.encode(wanted)
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
