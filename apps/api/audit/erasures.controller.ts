import { hash } from 'node:crypto'
import { Controller, Get, Param } from '@nestjs/common'
import Type from 'typebox'
import { logIdOf, readRecord, writeLeaf } from '#libs/domain/audit/leaf.js'
import { list, text } from '#libs/domain/event-sourcing/declare.js'
import { erasureIdOf } from '#libs/domain/inbox/erasure.js'
import { inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { Count, IdOf, OneOf, orNull, resource, time } from '#libs/runtime/resource.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { notFound, Problem } from '../http/problems.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Describe, Tag } from '../openapi/describe.js'
import { AuditLogs } from './audit-logs.service.js'

/** What a certificate can't prove. */
const NOT_PROVED = [
  'Backups of the keys that were made before the erasure may still have the key.',
  'Receivers of webhooks, and clients that have read mail, may have copies of it.',
  'It proves what Mayfly recorded, not that the disks were overwritten.',
]

const { schema: ErasureSchema, json: erasureJson } = resource(
  'Erasure',
  {
    description:
      'A certificate of the erasure of an inbox. `proof` shows that `leaf` is in the audit log, whose checkpoint is signed. The leaf has the SHA-256 of `record`, and the value of the record has the other facts.',
    examples: [
      {
        inbox_id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
        state: 'deleted',
        ended_at: '2026-11-21T09:41:07.122Z',
        actor: 'key_01jd6b2k8nf3gq6r9t2w5y8z1c',
        erased_at: '2026-11-21T09:41:07.306Z',
        copies_gone_by: '2026-11-21T10:41:07.306Z',
        event_id: 'evt_01jd6b8w0mf2ja3yz5c7e9g1hk',
        log_id: 'log_01jd6b2k8nf3gq6r9t2w5y8z1c',
        index: 1043,
        leaf: '{"actor":null,…}',
        record: '{"headers":{…},"key":"inb_01jd6b8w0mf2ja3yz5c7e9g1hk","value":"eyJpbmJveF9pZCI6…"}',
        proof: 'c2sp.org/tlog-proof@v1\nindex 1043\n…',
        does_not_prove: NOT_PROVED,
      },
    ],
  },
  {
    inboxId: IdOf('inb', 'The inbox.'),
    state: OneOf(['deleted', 'expired'], 'How it ended.'),
    endedAt: time('When it ended.'),
    actor: orNull(
      text,
      'The id of who deleted it: a key, or a member, session or inbox token; null if it expired.',
    ),
    erasedAt: time('When its key was deleted. Nothing that it encrypted can be read since.'),
    copiesGoneBy: time("From then on Mayfly's own disks have no copy of the key."),
    eventId: IdOf('evt', 'The event of the erasure.'),
    logId: IdOf('log', 'The audit log.'),
    index: Count('The index of its leaf.'),
    leaf: Type.String({ description: 'The leaf, as it is hashed.' }),
    record: Type.String({ description: 'The record of the event, as the leaf has its SHA-256.' }),
    proof: Type.String({ description: 'The proof that the leaf is in the log (C2SP tlog-proof).' }),
    doesNotProve: list(text, { description: 'What it can not prove.' }),
  },
)

/** Keys are deleted within moments, unless Mayfly is down or far behind. */
const ERASED_WITHIN_MS = 86_400_000

/** Certificates of erasure, under both paths of an inbox. */
@Controller(['v1/inboxes/:inboxId/erasure', 'v1/emails/:inboxId/erasure'])
@Tag('Inboxes')
export class ErasuresController {
  constructor(
    private readonly inboxes: Inboxes,
    private readonly logs: AuditLogs,
  ) {}

  @Get()
  @RequireScope('audit')
  @Describe({
    summary: 'Get the certificate of erasure of an inbox',
    description:
      'Of an inbox that has ended, once a checkpoint of the audit log has its erasure. Keep it: the record is on the event log for 90 days.',
    isWithoutPassword: true,
    answer: { description: 'The certificate.', schema: ErasureSchema },
    problems: ['not-yet-checkpointed', 'history-expired', 'audit-log-contradicted'],
  })
  async getInboxErasure(@Caller() principal: Principal, @Param('inboxId') inboxId: string) {
    const { inbox } = await this.inboxes.find(principal, inboxId)
    if (inbox.state === 'active') throw notFound(`The inbox ${inbox.id} has not ended, so nothing is erased.`)
    const log = await this.logs.checkpointed(principal, logIdOf(principal.accountId))
    const eventId = erasureIdOf(inbox.id)
    const leaf = await this.logs.leafOf(log, { id: eventId, time: inbox.endedAt }, ERASED_WITHIN_MS)
    if (leaf === null) {
      throw notFound(`The inbox ${inbox.id} ended before erasures were recorded, or the log is far behind.`)
    }
    const { value: record } = await this.logs.records([leaf]).next()
    if (record == null || hash('sha256', record) !== leaf.recordSha256) {
      const detail = `The record of the erasure of ${inbox.id} is no longer kept.`
      throw new Problem('history-expired', { detail })
    }
    const decoded = inboxEventCodec.decode(readRecord(record))
    if (decoded.kind !== 'event' || decoded.recorded.event.type !== 'InboxErased') {
      throw new Error(`${eventId} is not the event of an erasure`)
    }
    const facts = decoded.recorded.event
    const { index } = leaf
    return erasureJson({
      ...{ ...facts, eventId, logId: log.id, index, leaf: writeLeaf(leaf), record },
      ...{ proof: await this.logs.prove(log, index), doesNotProve: NOT_PROVED },
    })
  }
}
