import {
  Body,
  Catch,
  Controller,
  Get,
  HttpCode,
  Param,
  Post,
  Req,
  UseFilters,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common'
import { IsBoolean, IsString } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { mayUseEnvironment, type Member } from '#libs/domain/account/member.js'
import { isOrphaned } from '#libs/domain/account/account.js'
import { keyState } from '#libs/domain/account/key-expiry.js'
import { isId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { isLive } from '#libs/domain/inbox/token.js'
import { KnownKeys } from '../access/key-lookup.js'
import { AcceptInboxTokens, Caller, RequireScope, type Principal } from '../access/principal.js'
import { note } from '../http/access-log.js'
import { RequestBudgets, untilClientLeaves, type MailRead } from '../http/budgets.js'
import { Reply } from '../http/headers.js'
import { ProblemFilter } from '../http/problem-filter.js'
import { notFound, Problem, PROBLEMS } from '../http/problems.js'
import { IfGiven } from '../http/rules.js'
import { Produces } from '../http/media-types.js'
import { Instance } from '../instance.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { ContentPool } from '../messages/content-pool.js'
import type { ShownMail } from '../messages/content-worker.js'
import { FirstReadings, MessageReader, type PresentMessage } from '../messages/message-reader.js'
import { escaped } from '../http/html.js'
import { Views } from '../views.js'
import { RenderTickets } from './render-tickets.js'

class ShowMessage {
  @IsString({ message: 'inbox_id must be a text' })
  inbox_id!: string

  @IsString({ message: 'message_id must be a text' })
  message_id!: string

  @IfGiven()
  @IsBoolean({ message: 'remote must be true or false' })
  remote?: boolean
}

/**
 * The headers of a document in a frame, in addition to those of every page. The policy forbids what the sanitiser has
 * removed, should the sanitiser have a bug, and applies also if the document is opened outside of the console's frame.
 */
function frameHeaders(isRemoteAllowed: boolean): Record<string, string> {
  const policy = [
    'sandbox allow-popups allow-popups-to-escape-sandbox',
    "default-src 'none'",
    `img-src data:${isRemoteAllowed ? ' https: http:' : ''}`,
    "style-src 'unsafe-inline'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'self'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'x-frame-options': 'SAMEORIGIN',
    'cross-origin-resource-policy': 'same-origin',
    // Browsers may look up the hosts of links, which tells their senders that the mail was opened.
    'x-dns-prefetch-control': 'off',
  }
}

/** Answers a frame with a page for every error, since a person reads it. */
@Catch()
class ErrorPage implements ExceptionFilter {
  constructor(private readonly problems: ProblemFilter) {}

  async catch(error: unknown, host: ArgumentsHost): Promise<void> {
    const http = host.switchToHttp()
    const request = http.getRequest<FastifyRequest>()
    const { code, options } = this.problems.explain(error, request)
    note(request, { problem: code })
    const { status, title } = PROBLEMS[code]
    await http
      .getResponse<FastifyReply>()
      .code(status)
      .headers({ ...options.headers, ...frameHeaders(false) })
      .type('text/html; charset=utf-8')
      .send(`<!doctype html><title>${title}</title><p>${escaped(options.detail)}</p>`)
  }
}

/**
 * Shows the HTML of a message in a frame of the console (docs/console.md). The console asks for a ticket with its key,
 * and its frame, which can't send one, loads the document with the ticket.
 */
@Controller('console/render')
export class RenderController {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly reader: MessageReader,
    private readonly pool: ContentPool,
    private readonly budgets: RequestBudgets,
    private readonly readings: FirstReadings,
    private readonly tickets: RenderTickets,
    private readonly knownKeys: KnownKeys,
    private readonly views: Views,
    private readonly instance: Instance,
  ) {}

  @Post()
  @HttpCode(201)
  @RequireScope('inboxes', 'read')
  @AcceptInboxTokens()
  async createTicket(
    @Caller() principal: Principal,
    @Body() { inbox_id, message_id, remote: isRemoteAllowed = false }: ShowMessage,
    @Req() request: FastifyRequest,
  ) {
    const { inbox } = await this.inboxes.openContent(principal, inbox_id)
    const message = await this.reader.find(inbox, message_id)
    const { blocked } = await this.show(inbox, message, isRemoteAllowed, request)
    const { accountId, environment, id: inboxId } = inbox
    const shown = { accountId, environment, inboxId, messageId: message.id, isRemoteAllowed }
    const { ticket, expiresAt } = this.tickets.issue({ ...shown, holderId: principal.countedBy })
    return { url: `/console/render/${ticket}`, expires_at: expiresAt.toISOString(), blocked }
  }

  @Get(':ticket')
  @Produces('text/html')
  @UseFilters(ErrorPage)
  async document(
    @Param('ticket') ticket: string,
    @Req() request: FastifyRequest,
    @Reply() reply: FastifyReply,
  ) {
    const content = await this.tickets.use(ticket)
    const { accountId, environment, inboxId, messageId, holderId, isRemoteAllowed } = content
    const owner = { accountId, environment, inboxId: null, subject: null }
    const { inbox } = await this.inboxes.open(owner, inboxId)
    if (!(await this.isHeld(inbox, holderId))) {
      throw notFound('The key or session that opened the message has ended.')
    }
    const message = await this.reader.find(inbox, messageId)
    const { document } = await this.show(inbox, message, isRemoteAllowed, request)
    await this.budgets.holdAnswer(reply, document.length, inbox.accountId)
    this.readings.note(inbox, message)
    void reply.headers(frameHeaders(isRemoteAllowed))
    return Buffer.from(document)
  }

  /** Whether the key, the token of the inbox or the session that a ticket was issued to is still valid. */
  private async isHeld({ accountId, environment, tokens }: ActiveInbox, holderId: string): Promise<boolean> {
    const account = await this.knownKeys.account(accountId)
    if (account === null || account.suspendedAt !== null) return false
    if (isId('ses', holderId)) {
      const known = await this.knownKeys.session(accountId, holderId)
      return known !== null && mayReadMail(known.member, environment)
    }
    const now = this.instance.now()
    if (isId('key', holderId)) {
      return this.views.readAccounts(async (accounts) => {
        const key = await accounts.key(holderId)
        if (key === null || keyState(key, now) !== 'active') return false
        const member = await accounts.memberOf(key)
        return !isOrphaned(key, member) && mayReadMail(member, environment)
      })
    }
    return tokens.some((token) => token.id === holderId && isLive(token, now))
  }

  /** Throws not-found if the message has no HTML, html-too-complex, and as the budgets do. */
  private async show(
    inbox: ActiveInbox,
    message: PresentMessage,
    isRemoteAllowed: boolean,
    request: FastifyRequest,
  ): Promise<ShownMail> {
    const { accountId } = inbox
    const work = async (read: MailRead) => {
      // The turn to read is taken first: others wait for a thread while they have it.
      await read.pace(message.size)
      const readMail = async () => {
        const key = await this.reader.keyOf(inbox.id)
        const opened = await this.reader.open(key, inbox.id, message)
        if (opened === null) return this.reader.throwDeleted(inbox, message.id)
        const { html, attachments } = opened.mail
        if (html === null) throw notFound('The message has no HTML.')
        const hasParts = attachments.length > 0 || /\bcid:/i.test(html)
        const raw = hasParts ? await this.reader.raw(key, inbox.id, message.id) : null
        return { html, isRemoteAllowed, raw }
      }
      return this.pool.run('makeDocument', accountId, readMail, read.signal)
    }
    const done = await untilClientLeaves(request, (clientGone) =>
      this.budgets.readFor(accountId, clientGone, work),
    )
    if (done !== null && done.result !== null) return done.result
    const detail =
      'The HTML of this message is nested too deep, has too many elements, or takes too long to read.'
    throw new Problem('html-too-complex', { detail })
  }
}

/** Null for a member stands for a service key, or a session that one has started. */
function mayReadMail(member: Member | null, environment: string): boolean {
  return member === null || (member.readsMail && mayUseEnvironment(member, environment))
}
