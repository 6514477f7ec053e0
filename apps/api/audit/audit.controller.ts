import { Controller, Get, Param, Query, Res } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { text } from '#libs/domain/event-sourcing/declare.js'
import { logIdOf } from '#libs/domain/audit/leaf.js'
import { RECORDS_AT_ONCE } from '#libs/domain/audit/tiles.js'
import { bytesOf, isId, type EventId } from '#libs/domain/ids/typeid.js'
import { TYPE_PREFIX } from '#libs/ports/event-log/cloud-event.js'
import { Count, Digest, IdOf, orNull, resource, time } from '#libs/runtime/resource.js'
import { isMatch, ListActivity } from '../activity/list-activity.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { RequestBudgets } from '../http/budgets.js'
import { Reply } from '../http/headers.js'
import { readOffsetCursor, setNextLink, writeOffsetCursor } from '../http/list-pages.js'
import { LinesAnswer } from '../http/lines-answer.js'
import { NDJSON, Produces } from '../http/media-types.js'
import { invalid, noResource, notFound } from '../http/problems.js'
import { nextTurn } from '../http/request-turns.js'
import { FromDigits, IsWholeNumber } from '../http/rules.js'
import { Describe, DescribeProperty, Tag } from '../openapi/describe.js'
import { AuditLogs, SEQUENCED_WITHIN_MS, type IndexedLeaf } from './audit-logs.service.js'

const PLAIN_TEXT = 'text/plain; charset=utf-8'
const LOG_ID = 'log_01jd6b2k8nf3gq6r9t2w5y8z1c'

const { schema: AuditLogSchema, json: auditLogJson } = resource(
  'AuditLog',
  {
    description: 'A tamper-evident log of the account (C2SP tlog-tiles).',
    examples: [
      {
        id: LOG_ID,
        origin: `mayfly.example.com/v1/audit/logs/${LOG_ID}`,
        public_key: `mayfly.example.com/v1/audit/logs/${LOG_ID}+5a3d7c21+AZ1hsbLD1OX2BxgpOktcbX6PoKGywdLj9AUWJzhJWmt8`,
        size: 1042,
      },
    ],
  },
  {
    id: IdOf('log', 'The id of the log.'),
    origin: Type.String({ description: 'Its name in checkpoints.' }),
    publicKey: Type.String({ description: 'What verifies its checkpoints (C2SP signed-note).' }),
    size: Count('The number of its leaves.'),
  },
)

const { schema: AuditEventSchema, json: auditEventJson } = resource(
  'AuditEvent',
  {
    description: 'An event of the account in its audit log.',
    examples: [
      {
        index: 17,
        id: 'evt_01jd6b90czf2jb8z0w6s8p1q3r',
        type: 'mayfly.inbox.message-received',
        time: '2026-11-21T09:30:02.417Z',
        actor: null,
        environment: 'staging',
        subject: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
        position: 'inbox-events/3/1042',
        record_sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      },
    ],
  },
  {
    index: Count('Its index in the log.'),
    id: IdOf('evt', 'The id of the event.'),
    type: Type.String({ description: 'As on the event log.' }),
    time: time('When it happened.'),
    actor: orNull(text, 'The id of who caused it; null for Mayfly itself.'),
    environment: Type.String({ description: 'Of the inbox, or of the key that was used.' }),
    subject: Type.String({ description: 'The id of what it is about.' }),
    position: Type.String({ description: 'Topic, partition and offset of its record.' }),
    recordSha256: Digest('SHA-256 of its record.'),
  },
)

class ListAuditEvents extends ListActivity {
  override order: 'asc' | 'desc' = 'asc'
}

class RecordRange {
  @DescribeProperty('The index of the first leaf. Default: 0.')
  @FromDigits()
  @IsWholeNumber(0, Number.MAX_SAFE_INTEGER)
  from?: number

  @DescribeProperty(`The index after that of the last leaf, at most ${RECORDS_AT_ONCE} more.`)
  @FromDigits()
  @IsWholeNumber(0, Number.MAX_SAFE_INTEGER)
  to?: number
}

/** A page ends after this number of leaves, even if few of them match. */
const MAX_EXAMINED = 2_000
const LEAVES_AT_ONCE = 200

/** Types are found with and without the prefix that all have. */
function shortType(type: string): string {
  return type.startsWith(TYPE_PREFIX) ? type.slice(TYPE_PREFIX.length) : type
}

/** The account's audit log: its checkpoint, events, proofs and records. */
@Controller('v1/audit/logs')
@Tag('Accounts')
@RequireScope('audit')
export class AuditController {
  constructor(
    private readonly logs: AuditLogs,
    private readonly budgets: RequestBudgets,
    private readonly lines: LinesAnswer,
  ) {}

  @Get()
  @Describe({
    summary: 'List the audit logs',
    description: 'The one of the account. Its tiles are under `/v1/audit/logs/{id}` (C2SP tlog-tiles).',
    answer: { description: 'The logs.', schema: Type.Array(AuditLogSchema) },
  })
  async listAuditLogs(@Caller() principal: Principal) {
    const log = await this.logs.find(principal)
    const id = logIdOf(principal.accountId)
    const [origin, [publicKey = '']] = [this.logs.originOf(id), this.logs.publicKeysOf(id)]
    return [auditLogJson({ id, origin, publicKey, size: log?.tree.size ?? 0 })]
  }

  @Get(':logId/checkpoint')
  @Produces(PLAIN_TEXT)
  @Describe({
    summary: "Get an audit log's last checkpoint",
    description:
      'The size and root of the log, signed (C2SP tlog-checkpoint), with cosignatures that have a time.',
    answer: { description: 'The checkpoint.', schema: Type.String() },
    problems: ['not-yet-checkpointed', 'audit-log-contradicted'],
  })
  async getCheckpoint(@Caller() principal: Principal, @Param('logId') logId: string) {
    return this.logs.sign(await this.logs.checkpointed(principal, logId))
  }

  @Get(':logId/events')
  @Describe({
    summary: "List an audit log's events",
    description:
      'The leaves up to the last checkpoint, in the order of the log. A page may have fewer items than `limit`, even none, while `Link` has a next one.',
    answer: { description: 'A page of events.', schema: Type.Array(AuditEventSchema), headers: ['Link'] },
  })
  async listAuditEvents(
    @Caller() principal: Principal,
    @Param('logId') logId: string,
    @Query() query: ListAuditEvents,
    @Reply() reply: FastifyReply,
  ) {
    const log = await this.logs.upToCheckpoint(principal, logId)
    if (log === null) return []
    const { order, limit, cursor } = query
    const start = cursor === undefined ? { from: 0, to: null } : readOffsetCursor(log.id, cursor)
    const rest = { from: start.from, to: Math.min(start.to ?? log.size, log.size) }
    const { type, ...filters } = query
    const wanted = type === undefined ? filters : { ...filters, type: shortType(type) }
    const page: IndexedLeaf[] = []
    for (let examined = 0; page.length < limit && examined < MAX_EXAMINED; examined += LEAVES_AT_ONCE) {
      const some = await this.logs.leaves(log, { ...rest, order, limit: LEAVES_AT_ONCE })
      for (const leaf of some) {
        if (page.length === limit) break
        if (order === 'asc') rest.from = leaf.index + 1
        else rest.to = leaf.index
        if (isMatch({ ...leaf, type: shortType(leaf.type) }, wanted)) page.push(leaf)
      }
    }
    const to = order === 'asc' ? null : rest.to
    if (rest.from < rest.to) setNextLink(reply, writeOffsetCursor(log.id, { from: rest.from, to, end: null }))
    return page.map((leaf) =>
      auditEventJson({ ...leaf, position: `${leaf.topic}/${leaf.partition}/${leaf.offset}` }),
    )
  }

  @Get(':logId/events/:eventId/proof')
  @Produces(PLAIN_TEXT)
  @Describe({
    summary: 'Prove that an event is in an audit log',
    description: 'A proof that can be verified offline (C2SP tlog-proof), with the checkpoint.',
    answer: { description: 'The proof.', schema: Type.String() },
    problems: ['not-yet-checkpointed', 'audit-log-contradicted'],
  })
  async proveAuditEvent(
    @Caller() principal: Principal,
    @Param('logId') logId: string,
    @Param('eventId') eventId: string,
  ) {
    const log = await this.logs.checkpointed(principal, logId)
    if (!isId('evt', eventId)) throw noResource('event', eventId)
    const event = { id: eventId, time: madeAt(eventId) }
    const leaf = await this.logs.leafOf(log, event, SEQUENCED_WITHIN_MS)
    if (leaf === null) throw noResource('event', eventId)
    return this.logs.prove(log, leaf.index)
  }

  @Get(':logId/records')
  @Produces(NDJSON)
  @Describe({
    summary: 'Read the records of an audit log',
    description:
      "The record of each leaf from the event log, as it is hashed, each on a line. The line of a record that the event log no longer has is empty. If the records can't be read to the end, the last line has a `problem`.",
    answer: { description: 'A line for each leaf.', schema: Type.String() },
    problems: ['not-yet-checkpointed', 'audit-log-contradicted', 'busy'],
  })
  async listAuditRecords(
    @Caller() principal: Principal,
    @Param('logId') logId: string,
    @Query() range: RecordRange,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { from = 0, to = from + RECORDS_AT_ONCE } = range
    if (to <= from || to - from > RECORDS_AT_ONCE) {
      const detail = `to must be more than from, by ${RECORDS_AT_ONCE} at most`
      throw invalid({ detail, parameter: 'to' })
    }
    const { request } = reply
    const lines = async function* (records: AsyncGenerator<string | null>) {
      for await (const record of records) {
        yield `${record ?? ''}\n`
        await nextTurn(request)
      }
    }
    // Mail may be large: an account has a batch at a time.
    await this.budgets.bulk(reply, async () => {
      const log = await this.logs.checkpointed(principal, logId)
      const end = range.to === undefined ? Math.min(to, log.size) : to
      if (end > log.size || from >= end) throw notFound(`The log has ${log.size} leaves at its checkpoint.`)
      const leaves = await this.logs.leaves(log, { from, to: end, order: 'asc', limit: end - from })
      const records = lines(this.logs.records(leaves))
      await this.lines.send(reply, 200, records, (problem) => `{"problem":${problem}}\n`)
    })
  }
}

/** Ids are UUIDv7, which begin with a time: that of the event, or for InboxErased that of its inbox. */
function madeAt(eventId: EventId): Date {
  return new Date(Buffer.from(bytesOf(eventId)).readUIntBE(0, 6))
}
