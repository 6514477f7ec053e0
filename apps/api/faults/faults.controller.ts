import { Body, Controller, Delete, Get, Param, Put } from '@nestjs/common'
import { decide } from '#libs/domain/inbox/decide.js'
import type { Fault } from '#libs/domain/inbox/fault.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { hasEnded, Inboxes } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { listSchema } from '../openapi/dto-schema.js'
import { faultJson, readFaults, SetFaults } from './fault-requests.dto.js'

const ANSWER = { description: 'All faults of the inbox.', schema: listSchema(SetFaults) }

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
    id: 'setInboxFaults',
    summary: 'Set the faults of an inbox',
    description:
      'Makes the inbox misbehave on purpose towards the senders of its mail, to test how they handle it. Replaces all ' +
      'faults. Their attempts are counted from then on; setting the same faults again, with the same seeds, changes nothing.',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: ANSWER,
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async put(@Caller() principal: Principal, @Param('inboxId') inboxId: string, @Body() body: SetFaults) {
    return this.set(principal, inboxId, readFaults(body))
  }

  @Get()
  @RequireScope('inboxes', 'read')
  @Describe({
    id: 'getInboxFaults',
    summary: 'Read the faults of an inbox',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: ANSWER,
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async get(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    const { inbox } = await this.inboxes.openContent(principal, inboxId)
    return inbox.faults.map(faultJson)
  }

  @Delete()
  @RequireScope('inboxes')
  @Describe({
    id: 'removeInboxFaults',
    summary: 'Remove the faults of an inbox',
    requestHeaders: ['Mayfly-Inbox-Password'],
    answer: { ...ANSWER, description: 'An empty list.' },
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async remove(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    return this.set(principal, inboxId, [])
  }

  /** Resolves once mail is subject to them. */
  private async set(principal: Principal, inboxId: string, faults: readonly Fault[]) {
    const open = await this.inboxes.openContent(principal, inboxId)
    const { inbox } = await this.inboxes.change(principal, open, (current) => {
      const about = { inboxId: current.id, keyId: principal.keyId, now: this.instance.now() }
      const { events, refusal } = decide(
        { inbox: current, message: null },
        { type: 'SetFaults', ...about, faults },
      )
      if (refusal?.code === 'inbox-ended') throw hasEnded(refusal.inbox)
      return events
    })
    return inbox.faults.map(faultJson)
  }
}
