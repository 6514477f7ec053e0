import { Controller, Get, Param, Query, Res } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type, { type Static } from 'typebox'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import { CHANGEABLE, type HistoryEntry } from '#libs/ports/read-model/views.js'
import { type Principal, Caller, RequireScope } from '../access/principal.js'
import { Describe, Count, Digest, IdOf, OneOf, OrNull, Time, Tag } from '../openapi/describe.js'
import { IsCursor, IsLimit, IsOrder, offsetPageOf } from '../http/list-pages.js'
import { Views } from '../views.js'
import { Inboxes } from '../inboxes/inboxes.service.js'

const Position = Type.Object(
  {
    topic: Type.Literal('inbox-events', {
      description: 'Without the prefix that an installation may have configured.',
    }),
    partition: Count('The partition of the inbox.'),
    offset: Count('The offset in the partition.'),
  },
  { $id: 'Position', description: 'A position on the event log.' },
)

const Event = Type.Object(
  {
    id: IdOf('evt', 'The id of the event.'),
    type: OneOf(
      Object.values(INBOX_EVENTS).map(({ publicName }) => publicName),
      'The type of the event.',
    ),
    time: Time('When it happened.'),
    inbox_id: IdOf('inb', 'The inbox.'),
    message_id: OrNull(IdOf('msg', ''), 'The message; null if the event is about the inbox.'),
    key_id: OrNull(IdOf('key', ''), 'The key that caused the event; null if no key did.'),
    actor: OrNull(
      Type.String({ pattern: '^(tok|ses)_' }),
      'The inbox token or console session that was used, and made with the key; null if the key itself was.',
    ),
    changed: OrNull(
      Type.Array(OneOf(CHANGEABLE)),
      'The properties of the inbox that were changed; null if `type` is not `inbox.changed`.',
    ),
    position: Position,
    size: OrNull(Count(''), "Bytes of a mail's source."),
    digest: OrNull(
      Digest(''),
      'SHA-256 of the sealed bytes of a mail on the log, or of the source of a mail that a fault dropped.',
    ),
  },
  {
    $id: 'Event',
    description: 'An event of an inbox, without content.',
    examples: [
      {
        id: 'evt_01jd6b90czf2jb8z0w6s8p1q3r',
        type: 'message.received',
        time: '2026-11-21T09:30:02.417Z',
        inbox_id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
        message_id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p',
        key_id: null,
        actor: null,
        changed: null,
        position: { topic: 'inbox-events', partition: 3, offset: 1042 },
        size: 187,
        digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      },
    ],
  },
)

/** The query of GET /v1/inboxes/{id}/history. */
class ListHistory {
  @IsLimit({ max: 100 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'asc'

  @IsCursor('The position to continue from, as in `Link` or `Mayfly-Cursor`.')
  cursor?: string
}

/** Lists the history of an inbox, also after its end, under both of its paths. */
@Controller(['v1/inboxes/:inboxId/history', 'v1/emails/:inboxId/history'])
@Tag('Inboxes')
export class HistoryController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
  ) {}

  @Get()
  @RequireScope('audit', 'inboxes', 'read')
  @Describe({
    id: 'listInboxHistory',
    summary: "List an inbox's history",
    description:
      'Every event of the inbox, oldest first by default, without content. Available after the inbox has ended.',
    answer: { description: 'A page of events.', schema: Type.Array(Event), headers: ['Link'] },
  })
  async list(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: ListHistory,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { id } = (await this.inboxes.find(principal, inboxId)).inbox
    const page = await offsetPageOf(id, query, reply, (range) =>
      this.views.readComplete(id, () => this.views.inboxes.history({ inboxId: id, ...range })),
    )
    const partition = this.views.partitionOf(id)
    return page.map((entry) => historyJson(entry, id, partition))
  }
}

function historyJson(entry: HistoryEntry, inboxId: InboxId, partition: number): Static<typeof Event> {
  return {
    id: entry.id,
    type: INBOX_EVENTS[entry.type].publicName,
    time: entry.time.toISOString(),
    inbox_id: inboxId,
    message_id: entry.messageId,
    key_id: entry.keyId,
    actor: entry.actor,
    changed: entry.changed === null ? null : [...entry.changed],
    position: { topic: 'inbox-events', partition, offset: entry.offset },
    size: entry.size,
    digest: entry.digest,
  }
}
