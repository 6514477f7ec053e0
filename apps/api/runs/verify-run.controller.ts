import { Readable } from 'node:stream'
import { Controller, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common'
import { IsBoolean, Matches } from 'class-validator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { EndedInbox } from '#libs/domain/inbox/inbox.js'
import { addressOfRecipient } from '#libs/domain/inbox/new-inbox.js'
import { Authenticator } from '../access/authenticator.js'
import { Caller, READERS, RequireScope, type Principal } from '../access/principal.js'
import { RequestBudgets, type MailRead } from '../http/budgets.js'
import { ProblemFilter } from '../http/problem-filter.js'
import { linesBodyOf, TakeBody } from '../http/request-bodies.js'
import { StalledReaders } from '../http/stalled-readers.js'
import { NDJSON, Produces } from '../http/media-types.js'
import { FromDigits, FromTrueOrFalse, IsWholeNumber } from '../http/rules.js'
import { requireLabel, type Label } from '../inboxes/inbox-requests.dto.js'
import { Instance } from '../instance.js'
import { Describe, DescribeProperty, Tag } from '../openapi/describe.js'
import { Usage } from '../usage/usage.service.js'
import { Views } from '../views.js'
import { Comparison } from './comparison.js'
import { Manifest, MAX_LINES } from './manifest.js'
import { readManifest } from './manifest-body.js'
import { RunMail } from './run-mail.js'
import { ManifestLineSchema, RunLine } from './verify-schemas.js'

/** Lines are sent together when they have this many characters. */
const PIECE = 16 * 1024
/** Lines without a message whose inboxes are looked up at once. */
const LOOKUPS_AT_ONCE = 64
const MAX_REMEMBERED_INBOXES = 10_000
/** The maximum time until the views show the mail that was accepted before. */
const VISIBLE_WITHIN_MS = 30_000
const MAX_LATE_MS = 30 * 24 * 60 * 60 * 1_000

/** The query of POST /v1/runs/{label}/verify. */
class VerifyRun {
  @DescribeProperty('The header that identifies a mail, in upper or lower case.')
  @Matches(/^[!-9;-~]{1,200}$/, { message: 'id_header must be the name of a header' })
  id_header: string = 'Message-ID'

  @DescribeProperty(
    'The milliseconds after `sent_at` within which a mail must be received. Without it, no mail is late.',
  )
  @FromDigits()
  @IsWholeNumber(0, MAX_LATE_MS)
  late_ms?: number

  @DescribeProperty('Whether the mail of each inbox must be received in the order of its lines.')
  @FromTrueOrFalse()
  @IsBoolean({ message: 'order must be true or false' })
  order: boolean = false
}

/** A verification whose body has been read. */
interface Verification {
  principal: Principal
  labelText: string
  query: VerifyRun
  manifest: Manifest
  read: MailRead
}

/** Compares the mail of a load run with what was sent. */
@Controller('v1/runs')
@Tag('Messages')
export class VerifyRunController {
  constructor(
    private readonly views: Views,
    private readonly instance: Instance,
    private readonly mail: RunMail,
    private readonly usage: Usage,
    private readonly budgets: RequestBudgets,
    private readonly problems: ProblemFilter,
    private readonly stalled: StalledReaders,
    private readonly authenticator: Authenticator,
  ) {}

  @Post(':label/verify')
  @HttpCode(200)
  @RequireScope(...READERS)
  @Produces(NDJSON)
  @TakeBody({ hasLines: true })
  @Describe({
    id: 'verifyRun',
    summary: 'Compare the mail of a load run with what was sent',
    description:
      `The body is a manifest of up to ${MAX_LINES} lines: each is a mail that was sent to a recipient. It is compared with the ` +
      "mail in the active inboxes of the key's environment that have the label, without protected ones. A mail belongs to " +
      'the line with its recipient and the value of its `id_header`; if several lines have both, as many are expected. ' +
      'Mail that was accepted before the end of the body counts.\n\nThe answer has a line for each difference and ends ' +
      'with the summary. If the comparison fails after the answer has begun, its last line is the problem instead. An ' +
      'account makes one verification at a time.',
    bodyLine: ManifestLineSchema,
    answer: { description: 'The differences, and the summary.', schema: RunLine },
  })
  async verify(
    @Caller() principal: Principal,
    @Param('label') labelText: string,
    @Query() query: VerifyRun,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const label = requireLabel(labelText)
    await this.budgets.verify(reply, async (read, grow) => {
      const manifest = new Manifest((recipient) => this.mailboxOf(recipient), grow)
      await readManifest(linesBodyOf(request), manifest)
      // If there are no differences, nothing is sent for a long time. The next request restores the timeout.
      request.raw.socket.setTimeout(0)
      const pieces = inPieces(this.lines({ principal, labelText, query, manifest, read }, label))
      // The first piece is made before the answer begins, so that a failure before that has its own status.
      const first = await pieces.next()
      this.stalled.watchAnswer(reply.raw)
      await reply
        .code(200)
        .type(NDJSON)
        .send(Readable.from(this.orProblem(first, pieces, request), { objectMode: false }))
    })
  }

  /** Case and tags of a recipient make no difference. A foreign address has no inbox. */
  private mailboxOf(recipient: string): string {
    return addressOfRecipient(recipient, this.instance.settings.mailDomain) ?? recipient.toLowerCase()
  }

  /** The lines of the answer; if they can't all be found, the last one is the problem. */
  private async *orProblem(
    first: IteratorResult<string, void>,
    rest: AsyncGenerator<string, void>,
    request: FastifyRequest,
  ): AsyncGenerator<string> {
    try {
      for (let next = first; next.done !== true; next = await rest.next()) {
        // The key may be revoked at any time.
        await this.authenticator.reauthenticate(request, READERS)
        yield next.value
      }
    } catch (error) {
      yield `{"kind":"problem","problem":${this.problems.bodyOf(error, request)}}\n`
    }
  }

  private async *lines(verification: Verification, label: Label): AsyncGenerator<string, void> {
    const { principal, labelText, query, manifest, read } = verification
    const latest = await this.views.waitForLatest('inbox-events', VISIBLE_WITHIN_MS)
    const ends: number[] = []
    for (const { partition, end } of latest) ends[partition] = end
    const requireComplete = await this.views.beginRead('inbox-events')
    const options = { lateMs: query.late_ms ?? null, isOrdered: query.order }
    const comparison = new Comparison(manifest, options)
    const headerName = query.id_header.toLowerCase()
    for await (const message of this.mail.messages(principal, label, ends, headerName, read)) {
      for (const difference of await comparison.add(message)) yield `${JSON.stringify(difference)}\n`
    }

    const { counts } = comparison
    let erased = 0
    for await (const { line, inbox } of this.withoutMail(verification, label)) {
      const { recipient, id, sentAtMs } = manifest.read(line)
      const sent_at = sentAtMs === null ? null : new Date(sentAtMs).toISOString()
      const about = { recipient, id, line: line + 1, sent_at }
      if (inbox === null) yield `${JSON.stringify({ kind: 'missing', ...about })}\n`
      else {
        erased += 1
        const { id: inbox_id, state, endedAt } = inbox
        const ending = { inbox_id, state, ended_at: endedAt.toISOString() }
        yield `${JSON.stringify({ kind: 'erased', ...about, ...ending })}\n`
      }
    }

    await requireComplete()
    const missing = counts.expected - counts.found - erased
    const visible_ms = await this.usage.visible(principal, labelText)
    yield `${JSON.stringify({ kind: 'summary', ...counts, missing, erased, visible_ms })}\n`
  }

  /** The lines without a message, with the inbox of each if it has ended. */
  private async *withoutMail(
    { principal, manifest, read }: Verification,
    label: Label,
  ): AsyncGenerator<{ line: number; inbox: EndedInbox | null }> {
    const remembered = new LRUCache<string, Promise<EndedInbox | null>>({ max: MAX_REMEMBERED_INBOXES })
    const { mailDomain } = this.instance.settings
    const inboxOf = (line: number): Promise<EndedInbox | null> => {
      const address = addressOfRecipient(manifest.read(line).recipient, mailDomain)
      if (address === null) return Promise.resolve(null)
      const inbox = remembered.get(address) ?? this.mail.endedInbox(principal, label, address)
      remembered.set(address, inbox)
      return inbox
    }
    let lines: number[] = []
    const found = async () => {
      const inboxes = await Promise.all(lines.map(inboxOf))
      return lines.map((line, index) => ({ line, inbox: inboxes[index] ?? null }))
    }
    for (const line of manifest.pending()) {
      await read.pace(0)
      lines.push(line)
      if (lines.length < LOOKUPS_AT_ONCE) continue
      yield* await found()
      lines = []
    }
    yield* await found()
  }
}

/** The same text in fewer pieces. */
async function* inPieces(texts: AsyncIterable<string>): AsyncGenerator<string, void> {
  let piece = ''
  for await (const text of texts) {
    piece += text
    if (piece.length < PIECE) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}
