import { Body, Controller, HttpCode, Post, Res } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { isId, type InboxId } from '#libs/domain/ids/typeid.js'
import type { QuotaReservation } from '#libs/ports/read-model/account-quotas.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { RequestLimits } from '../access/request-limits.js'
import { Reply } from '../http/headers.js'
import { RequestBudgets } from '../http/budgets.js'
import { LinesAnswer } from '../http/lines-answer.js'
import { invalid, type Problem } from '../http/problems.js'
import { TakeBody } from '../http/request-bodies.js'
import { prefersLines, ProducesLines } from '../http/media-types.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'
import {
  BulkSummary,
  CreateInboxes,
  DeletedInboxes,
  DeleteInboxes,
  MAX_INBOXES,
} from './bulk-requests.dto.js'
import { createdInboxJson, CreatedInbox } from './inbox-schemas.js'
import { requireLabel, type Label } from './inbox-requests.dto.js'
import { Inboxes, lifespanOf, mayDelete, type NewInbox } from './inboxes.service.js'

/** How many inboxes are created or deleted at a time. Other requests run in between. */
const CHUNK = 25
/** A bulk request counts as one request for each of these, at least as one. */
const INBOXES_PER_REQUEST = 100
/** Enough for the ids of 10,000 inboxes. */
const MAX_IDS_BYTES = 512 * 1024
/** The maximum size of an inbox as JSON, in addition to the body of the request. */
const INBOX_BYTES = 600

/** Creates and deletes many inboxes in one request, under both paths. */
@Controller(['v1/inboxes', 'v1/emails'])
@Tag('Inboxes')
export class BulkInboxesController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly instance: Instance,
    private readonly budgets: RequestBudgets,
    private readonly limits: RequestLimits,
    private readonly lines: LinesAnswer,
  ) {}

  @Post('bulk')
  @RequireScope('inboxes')
  @ProducesLines()
  @Describe({
    summary: 'Create many inboxes',
    description:
      `Up to ${MAX_INBOXES}, in one array. If only some can be created, the request is answered 503, and a repeat with the ` +
      'same `Idempotency-Key` creates the others.\n\nWith `Accept: application/x-ndjson`, each inbox is a line of the answer ' +
      'as soon as it is created, and the last line has the counts. The request counts as one for each ' +
      `${INBOXES_PER_REQUEST} inboxes, at least as one.`,
    answer: {
      description: 'The inboxes.',
      schema: Type.Array(CreatedInbox),
      line: Type.Union([CreatedInbox, BulkSummary]),
    },
    problems: ['quota-exceeded'],
  })
  async createInboxes(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: CreateInboxes,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { count, duration } = body
    // A request that is refused for its duration or the account's quota must not count as many.
    lifespanOf(duration, principal.plan.retention)
    const reserved = await this.inboxes.reserve(principal, count)
    try {
      await this.requireQuota(principal, count, reply)
      await this.createReserved(principal, minting, body, reserved, reply)
    } finally {
      reserved.release()
    }
  }

  private createReserved(
    principal: Principal,
    minting: Minting,
    body: CreateInboxes,
    reserved: QuotaReservation,
    reply: FastifyReply,
  ): Promise<void> {
    const { count } = body
    return this.budgets.bulk(reply, async () => {
      const chunks = this.chunks(principal, minting, body, reserved)
      if (prefersLines(reply.request)) {
        let created = 0
        const summary = (problem: string) =>
          `{"created":${created},"failed":${count - created},"problem":${problem}}\n`
        async function* lines() {
          for await (const chunk of chunks) {
            created += chunk.length
            yield chunk.map((line) => `${line}\n`).join('')
          }
          yield summary('null')
        }
        await this.lines.send(reply, 201, lines(), summary)
        return
      }
      await this.budgets.holdAnswer(reply, count * (INBOX_BYTES + JSON.stringify(body).length))
      const created: string[] = []
      for await (const chunk of chunks) created.push(...chunk)
      await reply
        .code(201)
        .type('application/json; charset=utf-8')
        .send(`[${created.join(',')}]`)
    })
  }

  @Post('bulk-delete')
  @HttpCode(200)
  @RequireScope('inboxes', 'admin')
  @TakeBody({ maxJsonBytes: MAX_IDS_BYTES })
  @Describe({
    summary: 'Delete many inboxes',
    description:
      `Deletes up to ${MAX_INBOXES} inboxes with all their mail, by their ids or by a label. Ids without an active inbox are ` +
      'skipped. Protected inboxes are only deleted with a key with the scope `admin`, and skipped otherwise. The request ' +
      `counts as one for each ${INBOXES_PER_REQUEST} ids or deleted inboxes, at least as one.`,
    answer: { description: 'What was deleted.', schema: DeletedInboxes },
  })
  async deleteInboxes(
    @Caller() principal: Principal,
    @Body() { ids, label }: DeleteInboxes,
    @Reply() reply: FastifyReply,
  ) {
    if ((ids === undefined) === (label === undefined)) {
      throw invalid({ detail: 'either ids or label must be given', pointer: '' })
    }
    await this.requireQuota(principal, ids?.length ?? 1, reply)
    return this.budgets.bulk(reply, async () =>
      ids === undefined
        ? this.deleteByLabel(principal, requireLabel(label ?? ''), reply)
        : { deleted: await this.deleteById(principal, ids), remaining: 0 },
    )
  }

  /** Throws rate-limited if the request counts as several and the quota was exceeded before. */
  private async requireQuota(principal: Principal, inboxes: number, reply: FastifyReply): Promise<void> {
    const refusal = await this.charge(principal, inboxes, reply)
    if (refusal !== null) throw refusal
  }

  /** Counts the request by its number of inboxes. The request itself is counted already. */
  private charge(principal: Principal, inboxes: number, reply: FastifyReply): Promise<Problem | null> {
    const requests = Math.max(Math.ceil(inboxes / INBOXES_PER_REQUEST), 1)
    return this.limits.charge(principal, requests - 1, reply)
  }

  /** Creates the inboxes chunk by chunk, as JSON. */
  private async *chunks(
    principal: Principal,
    minting: Minting,
    body: CreateInboxes,
    reserved: QuotaReservation,
  ): AsyncGenerator<string[]> {
    const { count, duration, name = null, labels = {}, password_protected: isProtected = false } = body
    const { mailDomain: domain } = this.instance.settings
    for (let from = 0; from < count; from += CHUNK) {
      const wanted = Array.from({ length: Math.min(CHUNK, count - from) }, (_, index): NewInbox => {
        const numbered = name === null ? null : `${name}-${from + index + 1}`
        return { duration, name: numbered, labels, isProtected, domain }
      })
      const created = await this.inboxes.createAll(principal, minting, wanted, reserved)
      yield created.map((each) => JSON.stringify(createdInboxJson(each)))
    }
  }

  private async deleteById(principal: Principal, ids: readonly string[]): Promise<number> {
    const distinct = [...new Set(ids)].filter((id): id is InboxId => isId('inb', id))
    let deleted = 0
    for (const some of chunksOf(distinct, CHUNK)) {
      const found = await this.inboxes.findAll(principal, some)
      deleted += await this.inboxes.deleteAll(principal, found)
    }
    return deleted
  }

  private async deleteByLabel(principal: Principal, label: Label, reply: FastifyReply) {
    let deleted = 0
    let remaining = 0
    for await (const page of this.views.activeInboxes(principal, [label], this.instance.now)) {
      const deletable = page.filter((inbox) => mayDelete(principal, inbox))
      const now = deletable.slice(0, MAX_INBOXES - deleted)
      remaining += deletable.length - now.length
      for (const some of chunksOf(now, CHUNK)) deleted += await this.inboxes.deleteAll(principal, some)
    }
    await this.charge(principal, deleted, reply)
    return { deleted, remaining }
  }
}
