import { Controller, Get, Param, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { plain, text } from '#libs/domain/event-sourcing/declare.js'
import { logIdOf } from '#libs/domain/audit/leaf.js'
import { bytesOf, isId, type EventId } from '#libs/domain/ids/typeid.js'
import { TYPE_PREFIX } from '#libs/ports/event-log/cloud-event.js'
import { Count, Digest, IdOf, orNull, resource, time } from '#libs/runtime/resource.js'
import { isMatch, ListActivity } from '../activity/list-activity.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { Reply } from '../http/headers.js'
import { readOffsetCursor, setNextLink, writeOffsetCursor } from '../http/list-pages.js'
import { Produces } from '../http/media-types.js'
import { noResource } from '../http/problems.js'
import { Describe, Tag } from '../openapi/describe.js'
import { AuditLogs, SEQUENCED_WITHIN_MS, type IndexedLeaf } from './audit-logs.service.js'

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
    id: plain(IdOf('log', 'The id of the log.')),
    origin: plain(Type.String({ description: 'Its name in checkpoints.' })),
    publicKey: plain(Type.String({ description: 'What verifies its checkpoints (C2SP signed-note).' })),
    size: plain(Count('The number of its leaves.')),
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
    index: plain(Count('Its index in the log.')),
    id: plain(IdOf('evt', 'The id of the event.')),
    type: plain(Type.String({ description: 'As on the event log.' })),
    time: time('When it happened.'),
    actor: orNull(text, 'The id of who caused it; null for Mayfly itself.'),
    environment: plain(Type.String({ description: 'Of the inbox, or of the key that was used.' })),
    subject: plain(Type.String({ description: 'The id of what it is about.' })),
    position: plain(Type.String({ description: 'Topic, partition and offset of its record.' })),
    recordSha256: plain(Digest('SHA-256 of its record.')),
  },
)

class ListAuditEvents extends ListActivity {
  override order: 'asc' | 'desc' = 'asc'
}

/** A page ends after this number of leaves, even if few of them match. */
const MAX_EXAMINED = 2_000
const LEAVES_AT_ONCE = 200

/** Types are found with and without the prefix that all have. */
function shortType(type: string): string {
  return type.startsWith(TYPE_PREFIX) ? type.slice(TYPE_PREFIX.length) : type
}

/** The account's audit log as JSON, and proofs of its events. */
@Controller('v1/audit/logs')
@Tag('Accounts')
export class AuditController {
  constructor(private readonly logs: AuditLogs) {}

  @Get()
  @RequireScope('audit')
  @Describe({
    summary: 'List the audit logs',
    description: 'The one of the account. Its checkpoint and tiles are under `/v1/audit/logs/{id}`.',
    answer: { description: 'The logs.', schema: Type.Array(AuditLogSchema) },
  })
  async listAuditLogs(@Caller() principal: Principal) {
    const log = await this.logs.find(principal)
    const id = logIdOf(principal.accountId)
    const [origin, [publicKey = '']] = [this.logs.originOf(id), this.logs.publicKeysOf(id)]
    return [auditLogJson({ id, origin, publicKey, size: log?.tree.size ?? 0 })]
  }

  @Get(':logId/events')
  @RequireScope('audit')
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
  @RequireScope('audit')
  @Produces('text/plain; charset=utf-8')
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
}

/** Ids are UUIDv7, which begin with a time: that of the event, or for InboxErased that of its inbox. */
function madeAt(eventId: EventId): Date {
  return new Date(Buffer.from(bytesOf(eventId)).readUIntBE(0, 6))
}
