import { Controller, HttpCode, Param, Post, Query, Res } from '@nestjs/common'
import { Matches } from 'class-validator'
import type { FastifyReply } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { ActiveInbox, EndedInbox } from '#libs/domain/inbox/inbox.js'
import { addressOfRecipient } from '#libs/domain/inbox/new-inbox.js'
import { batchesOf } from '#libs/runtime/chunks.js'
import { Authenticator } from '../access/authenticator.js'
import { Caller, READERS, RequireScope, type Principal } from '../access/principal.js'
import { RequestBudgets, type MailRead } from '../http/budgets.js'
import { nextTurn } from '../http/request-turns.js'
import { LinesAnswer } from '../http/lines-answer.js'
import { linesBodyOf, TakeBody } from '../http/request-bodies.js'
import { NDJSON, Produces } from '../http/media-types.js'
import { FromDigits, IsTrueOrFalse, IsWholeNumber } from '../http/rules.js'
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
  @IsTrueOrFalse()
  order: boolean = false
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
    private readonly answer: LinesAnswer,
    private readonly authenticator: Authenticator,
  ) {}

  @Post(':label/verify')
  @HttpCode(200)
  @RequireScope(...READERS)
  @Produces(NDJSON)
  @TakeBody({ hasLines: true })
  @Describe({
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
  async verifyRun(
    @Caller() principal: Principal,
    @Param('label') labelText: string,
    @Query() query: VerifyRun,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { request } = reply
    const label = requireLabel(labelText)
    await this.budgets.verify(reply, async (read, grow) => {
      const manifest = new Manifest((recipient) => this.mailboxOf(recipient), grow)
      await readManifest(linesBodyOf(request), manifest, () => nextTurn(request))
      // If there are no differences, nothing is sent for a long time. The next request restores the timeout.
      request.raw.socket.setTimeout(0)
      const pieces = inPieces(this.lines(principal, label, query, manifest, read), () =>
        this.authenticator.reauthenticate(request, READERS),
      )
      await this.answer.send(reply, 200, pieces, (problem) => `{"kind":"problem","problem":${problem}}\n`)
    })
  }

  /** Case and tags of a recipient make no difference. A foreign address has no inbox. */
  private mailboxOf(recipient: string): string {
    return addressOfRecipient(recipient, this.instance.settings.mailDomain) ?? recipient.toLowerCase()
  }

  private async *lines(
    principal: Principal,
    label: Label,
    query: VerifyRun,
    manifest: Manifest,
    read: MailRead,
  ): AsyncGenerator<string> {
    const latest = await this.views.waitForLatest('inbox-events', VISIBLE_WITHIN_MS)
    const ends: number[] = []
    for (const { partition, end } of latest) ends[partition] = end
    const requireComplete = await this.views.beginRead('inbox-events')
    const options = { lateMs: query.late_ms ?? null, isOrdered: query.order }
    const comparison = new Comparison(manifest, options)
    const headerName = query.id_header.toLowerCase()
    let dropped = 0
    const countDropped = (inboxes: readonly ActiveInbox[]) => {
      for (const { droppedCount } of inboxes) dropped += droppedCount
    }
    for await (const message of this.mail.messages(principal, label, ends, headerName, read, countDropped)) {
      for (const difference of await comparison.add(message)) yield `${JSON.stringify(difference)}\n`
    }

    const { counts } = comparison
    const endedInbox = this.endedInboxes(principal, label)
    let erased = 0
    for await (const lines of batchesOf(manifest.pending(), LOOKUPS_AT_ONCE)) {
      const found = lines.map(async (line) => {
        await read.pace(0)
        const { recipient, id, sentAtMs } = manifest.read(line)
        const sent_at = sentAtMs === null ? null : new Date(sentAtMs).toISOString()
        return { about: { recipient, id, line: line + 1, sent_at }, inbox: await endedInbox(recipient) }
      })
      for (const { about, inbox } of await Promise.all(found)) {
        if (inbox !== null) erased += 1
        const ended = inbox && { inbox_id: inbox.id, state: inbox.state, ended_at: inbox.endedAt }
        yield `${JSON.stringify({ kind: inbox === null ? 'missing' : 'erased', ...about, ...ended })}\n`
      }
    }

    await requireComplete()
    const missing = counts.expected - counts.found - erased
    const visible_ms = await this.usage.visible(principal, label.join(':'))
    const faults = { dropped, duplicated: comparison.duplicatedByFaults }
    yield `${JSON.stringify({ kind: 'summary', ...counts, missing, erased, faults, visible_ms })}\n`
  }

  /** Finds the inbox of a recipient if it has ended. Remembers those of other lines. */
  private endedInboxes(
    principal: Principal,
    label: Label,
  ): (recipient: string) => Promise<EndedInbox | null> {
    const remembered = new LRUCache<string, Promise<EndedInbox | null>>({ max: MAX_REMEMBERED_INBOXES })
    return (recipient) => {
      const address = addressOfRecipient(recipient, this.instance.settings.mailDomain)
      if (address === null) return Promise.resolve(null)
      const inbox = remembered.get(address) ?? this.mail.endedInbox(principal, label, address)
      remembered.set(address, inbox)
      return inbox
    }
  }
}

/** The same text in fewer pieces. `authenticate` is called before each, since the key may be revoked at any time. */
async function* inPieces(
  texts: AsyncIterable<string>,
  authenticate: () => Promise<void>,
): AsyncGenerator<string> {
  let piece = ''
  for await (const text of texts) {
    piece += text
    if (piece.length < PIECE) continue
    await authenticate()
    yield piece
    piece = ''
  }
  if (piece === '') return
  await authenticate()
  yield piece
}
