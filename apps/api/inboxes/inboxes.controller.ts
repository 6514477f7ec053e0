import { Body, Controller, Delete, Get, Param, Post, Query, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Inbox as AnyInbox } from '#libs/domain/inbox/inbox.js'
import type { Principal } from '../access/authenticator.js'
import { Mint, type Minting } from '../access/minting.js'
import { Caller, NeedsScope } from '../access/scope.guard.js'
import { RequestBudgets } from '../http/budgets.js'
import { pageOf, familyOf, writeMessageCursor } from '../http/list-pages.js'
import { Describe } from '../openapi/describe.js'
import { CreateInbox, ListInboxes } from './inbox-requests.dto.js'
import {
  CreatedInbox,
  DeletedInbox,
  EndedInbox,
  Inbox,
  deletedInboxJson,
  endedInboxJson,
  inboxJson,
} from './inbox-schemas.js'
import { comingToItsEnd, Inboxes, type OpenInbox } from './inboxes.service.js'
import { readLabels } from './labels.js'

/** An inbox's address book: made, listed, read, deleted. Both families of paths come here. */
@Controller(['v1/inboxes', 'v1/emails'])
export class InboxesController {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly budgets: RequestBudgets,
  ) {}

  @Post()
  @NeedsScope('inboxes')
  @Describe({
    id: 'createInbox',
    tag: 'Inboxes',
    summary: 'Create an inbox',
    description: 'Mail to its address is accepted from now on.',
    answer: { description: 'The inbox.', schema: CreatedInbox, headers: ['Location', 'Mayfly-Cursor'] },
  })
  async create(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: CreateInbox,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const created = await this.inboxes.create(principal, body, minting)
    void reply.header('location', `${familyOf(request)}/${created.inbox.id}`)
    setCursor(reply, created)
    const { inbox, details, password } = created
    return { ...inboxJson(inbox, details), ...(password === null ? {} : { password }) }
  }

  @Get()
  @NeedsScope('inboxes', 'read')
  @Describe({
    id: 'listInboxes',
    tag: 'Inboxes',
    summary: 'List inboxes',
    description:
      "Those of the key's environment, newest first. Ended ones are listed with `state`, in a shorter form.",
    answer: {
      description: 'A page of them.',
      schema: Type.Array(Type.Union([Inbox, EndedInbox])),
      headers: ['Link'],
    },
    problems: ['busy'],
  })
  async list(
    @Caller() principal: Principal,
    @Query() query: ListInboxes,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { state } = query
    const labels = readLabels(query.label)
    const look = () =>
      pageOf('inb', query, { request, reply }, (place) =>
        this.inboxes.list(principal, { ...place, state, labels }),
      )
    // The views find one label by an index, and look through what has it for further ones.
    const page = await (labels.length > 1 ? this.budgets.search(request, look) : look())
    const items = await Promise.all(page.map((inbox) => this.listed(inbox)))
    return items.filter((item) => item !== null)
  }

  @Get(':inboxId')
  @NeedsScope('inboxes', 'read')
  @Describe({
    id: 'getInbox',
    tag: 'Inboxes',
    summary: 'Read an inbox',
    answer: { description: 'The inbox.', schema: Inbox, headers: ['Mayfly-Cursor'] },
    problems: ['inbox-deleted', 'inbox-expired'],
  })
  async get(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const found = await this.inboxes.open(principal, inboxId)
    setCursor(reply, found)
    const details = await this.inboxes.details(found.inbox)
    if (details === null) throw comingToItsEnd(found.inbox.id)
    return inboxJson(found.inbox, details)
  }

  @Delete(':inboxId')
  @NeedsScope('inboxes', 'admin')
  @Describe({
    id: 'deleteInbox',
    tag: 'Inboxes',
    summary: 'Delete an inbox',
    description:
      'It and all its mail are gone for good. A repeat repeats the answer. A protected one takes its password, or a ' +
      'key with the scope `admin`.',
    takes: ['Mayfly-Inbox-Password'],
    answer: { description: 'Its end.', schema: DeletedInbox },
    problems: ['inbox-expired'],
  })
  async delete(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    return deletedInboxJson(await this.inboxes.delete(principal, inboxId))
  }

  /** Null for an inbox that comes to its end just now. */
  private async listed(inbox: AnyInbox) {
    if (inbox.state !== 'active') return endedInboxJson(inbox)
    const details = await this.inboxes.details(inbox)
    return details === null ? null : inboxJson(inbox, details)
  }
}

function setCursor(reply: FastifyReply, { inbox, endOffset }: OpenInbox): void {
  void reply.header('mayfly-cursor', writeMessageCursor(inbox.id, { from: endOffset, to: null, end: null }))
}
