import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { allows } from '#libs/domain/account/access.js'
import { decide } from '#libs/domain/inbox/decide.js'
import type { ActiveInbox, Inbox as AnyInbox } from '#libs/domain/inbox/inbox.js'
import type { InboxDetails } from '#libs/domain/inbox/events.js'
import { detailsContext, sealJson } from '#libs/ports/key-vault/sealing.js'
import {
  AcceptInboxTokens,
  Caller,
  READERS,
  RequireScope,
  requireScope,
  type Principal,
} from '../access/principal.js'
import { PastInbox, pastInboxJson } from '../audit/past-schemas.js'
import { AS_OF_PROBLEMS, AsOf, PastStates } from '../audit/past-states.service.js'
import { Reply, withLocation } from '../http/headers.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { RequestBudgets } from '../http/budgets.js'
import { pageOf, inboxesPathOf } from '../http/list-pages.js'
import { addressOf } from '#libs/mail/mailbox.js'
import { Instance } from '../instance.js'
import { OpenedMail } from '../messages/opened-mail.js'
import { Describe, Tag } from '../openapi/describe.js'
import { ChosenAddresses } from './chosen-addresses.js'
import { CreateInbox, ListInboxes, readChosenAddress, readLabels, UpdateInbox } from './inbox-requests.dto.js'
import {
  createdInboxJson,
  CreatedInbox,
  DeletedInbox,
  EndedInbox,
  Inbox,
  deletedInboxJson,
  endedInboxJson,
  inboxJson,
} from './inbox-schemas.js'
import {
  beingDeleted,
  hasEnded,
  Inboxes,
  lifespanOf,
  setCursor,
  unsealDetails,
  type OpenInbox,
} from './inboxes.service.js'

/** Creates, lists, reads, changes and deletes inboxes, under both paths. */
@Controller(['v1/inboxes', 'v1/emails'])
@Tag('Inboxes')
export class InboxesController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly chosen: ChosenAddresses,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    private readonly opened: OpenedMail,
    private readonly budgets: RequestBudgets,
    private readonly past: PastStates,
  ) {}

  @Post()
  @RequireScope('inboxes')
  @Describe({
    summary: 'Create an inbox',
    description:
      'Its address accepts mail immediately. It is generated, unless the body has one in a domain of yours.',
    answer: { description: 'The inbox.', schema: CreatedInbox, headers: ['Location', 'Mayfly-Cursor'] },
    problems: ['quota-exceeded', 'address-taken', 'domain-not-verified'],
  })
  async createInbox(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: CreateInbox,
    @Reply() reply: FastifyReply,
  ) {
    const { duration, name = null, labels = {}, password_protected: isProtected = false } = body
    const domain = this.instance.settings.mailDomain
    const wanted = { duration, name, labels, isProtected, domain }
    const chosen = readChosenAddress(body)
    const created = await (chosen === null
      ? this.inboxes.create(principal, minting, wanted)
      : this.chosen.create(principal, minting, wanted, chosen))
    setCursor(reply, created)
    return withLocation(reply, inboxesPathOf(reply.request), createdInboxJson(created))
  }

  @Get()
  @RequireScope('inboxes', 'read', 'audit')
  @Describe({
    summary: 'List inboxes',
    description:
      "The inboxes of the key's environment, newest first by default. Use `state` to list ended inboxes, which have fewer " +
      'properties. For a key that has only the scope `audit`, `name` is null.',
    answer: {
      description: 'A page of inboxes.',
      schema: Type.Array(Type.Union([Inbox, EndedInbox])),
      headers: ['Link'],
    },
    problems: ['busy'],
  })
  async listInboxes(
    @Caller() principal: Principal,
    @Query() query: ListInboxes,
    @Reply() reply: FastifyReply,
  ) {
    const { state } = query
    const labels = readLabels(query.label)
    const { address: text = '' } = query
    // In a query, a `+` that is not encoded is a space.
    const address = addressOf(text) ?? addressOf(text.replaceAll(' ', '+'))
    if (query.address !== undefined && address === null) return []
    const { accountId, environment } = principal
    const read = () =>
      pageOf('inb', query, reply, (listQuery) => {
        const wanted = {
          ...listQuery,
          state,
          labels,
          address,
          accountId,
          environment,
          now: this.instance.now(),
        }
        return this.views.readComplete('inbox-events', () => this.views.inboxes.listInboxes(wanted))
      })
    // The views have an index by label. Inboxes with the first label are searched for the others.
    const page = await (labels.length > 1 ? this.budgets.query(reply.request, read, 'reads') : read())
    const items = await Promise.all(page.map((inbox) => this.listItemOf(inbox, principal)))
    return items.filter((item) => item !== null)
  }

  @Get(':inboxId')
  @RequireScope('inboxes', 'read', 'audit')
  @AcceptInboxTokens()
  @Describe({
    summary: 'Read an inbox',
    description: 'A key that has only the scope `audit` can read it with `as_of`.',
    isWithoutPassword: true,
    answer: {
      description: 'The inbox.',
      schema: Type.Union([Inbox, PastInbox]),
      headers: ['Mayfly-Cursor', 'Mayfly-As-Of'],
    },
    problems: ['inbox-deleted', 'inbox-expired', ...AS_OF_PROBLEMS],
  })
  async getInbox(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() { as_of: asOf }: AsOf,
    @Reply() reply: FastifyReply,
  ) {
    if (asOf !== undefined) {
      const past = await this.past.inbox(principal, inboxId, asOf, reply)
      setCursor(reply, past)
      return pastInboxJson({ ...past.inbox, name: null, erased: past.erasedBy() })
    }
    requireScope(principal, READERS)
    return this.answerOf(await this.inboxes.open(principal, inboxId), reply)
  }

  @Patch(':inboxId')
  @RequireScope('inboxes')
  @Describe({
    summary: 'Change an inbox',
    description:
      'What the body does not name stays, and so does its mail. `duration` counts from the creation, and may also ' +
      "shorten the lifetime. An inbox can't be changed in the last second before it expires. A protected inbox " +
      'requires its password, or a key that also has the scope `admin`.',
    answer: { description: 'The inbox.', schema: Inbox, headers: ['Mayfly-Cursor'] },
    problems: ['inbox-deleted', 'inbox-expired', 'busy'],
  })
  async updateInbox(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Body() { duration, name, labels }: UpdateInbox,
    @Reply() reply: FastifyReply,
  ) {
    const { keyId, plan } = principal
    const { retention } = plan
    const lifespan = duration === undefined ? null : lifespanOf(duration, retention)
    const now = this.instance.now()
    const open = await this.inboxes.open(principal, inboxId)
    await this.requirePassword(principal, open.inbox)
    const changed = await this.inboxes.change(principal, open, async (inbox) => {
      const { id } = inbox
      const lookup = await this.views.vault.find(id)
      if (lookup.state !== 'known') throw beingDeleted(id)
      const details = unsealDetails(lookup.key, inbox)
      const sealed =
        name === undefined || name === details.name
          ? null
          : sealJson(lookup.key, detailsContext(id), { ...details, name } satisfies InboxDetails)
      const wanted = { lifespan, retention, labels: labels ?? null, sealed }
      return { type: 'ChangeInbox', inboxId: id, keyId, ...wanted, now }
    })
    return this.answerOf(changed, reply)
  }

  @Delete(':inboxId')
  @RequireScope('inboxes', 'admin')
  @AcceptInboxTokens()
  @Describe({
    summary: 'Delete an inbox',
    description:
      'The inbox and all its mail are permanently deleted. A repeat gets the same answer. A protected inbox requires its ' +
      'password, or a key with the scope `admin`.',
    answer: { description: 'When it was deleted.', schema: DeletedInbox },
    problems: ['inbox-expired'],
  })
  async deleteInbox(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    const { inbox } = await this.inboxes.find(principal, inboxId)
    const { id, state } = inbox
    const { keyId } = principal
    if (state === 'active') await this.requirePassword(principal, inbox)
    const command = { type: 'DeleteInbox', inboxId: id, keyId, now: this.instance.now() } as const
    const { events, refusal } = decide({ inbox, message: null }, command)
    if (refusal?.code === 'inbox-ended') throw hasEnded(refusal.inbox)
    await this.recorder.record(events, principal)
    this.opened.forget(id)
    const row = await this.views.inboxes.inbox(id)
    // The views were lost in the meantime, and are being rebuilt.
    if (row === null || row.inbox.state === 'active') throw beingDeleted(id)
    if (row.inbox.state !== 'deleted') throw hasEnded(row.inbox)
    return deletedInboxJson(row.inbox)
  }

  /** The answer with an active inbox. */
  private async answerOf(open: OpenInbox, reply: FastifyReply) {
    const details = await this.inboxes.details(open.inbox)
    if (details === null) throw beingDeleted(open.inbox.id)
    setCursor(reply, open)
    return inboxJson({ ...open.inbox, name: details.name })
  }

  /** The scope `admin` needs no password to change or delete an inbox. Throws as `Inboxes.requirePassword` does. */
  private async requirePassword(principal: Principal, inbox: ActiveInbox): Promise<void> {
    if (!principal.scopes.includes('admin')) await this.inboxes.requirePassword(principal, inbox)
  }

  /** Null if the inbox is being deleted. The name is sealed like mail, so the scope `audit` does not read it. */
  private async listItemOf(inbox: AnyInbox, { scopes }: Principal) {
    if (inbox.state !== 'active') return endedInboxJson(inbox)
    if (!allows(scopes, READERS)) return inboxJson({ ...inbox, name: null })
    const details = await this.inboxes.details(inbox)
    return details === null ? null : inboxJson({ ...inbox, name: details.name })
  }
}
