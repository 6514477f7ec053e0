import { Controller, Get, Param, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { list, plain } from '#libs/domain/event-sourcing/declare.js'
import { HISTORY_EVENTS, INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import { CHANGEABLE } from '#libs/ports/read-model/views.js'
import { Count, Digest, IdOf, OneOf, orNull, OrNull, resource, time } from '#libs/runtime/resource.js'
import { type Principal, Caller, RequireScope } from '../access/principal.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Reply } from '../http/headers.js'
import { ListPage, offsetPageOf } from '../http/list-pages.js'
import { Views } from '../views.js'
import { IsAsOf, PastStates } from '../audit/past-states.service.js'
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

const { schema: Event, json: eventJson } = resource(
  'Event',
  {
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
  {
    id: IdOf('evt', 'The id of the event.'),
    type: OneOf(
      HISTORY_EVENTS.map(({ publicName }) => publicName),
      'The type of the event.',
    ),
    time: time('When it happened.'),
    inboxId: IdOf('inb', 'The inbox.'),
    messageId: OrNull(IdOf('msg', ''), 'The message; null if the event is about the inbox.'),
    keyId: OrNull(IdOf('key', ''), 'The key that caused the event; null if no key did.'),
    actor: OrNull(
      Type.String({ pattern: '^(mem|tok|ses)_' }),
      'The member who did it; or the inbox token or console session that was used, and made with the key; null if the key itself was.',
    ),
    changed: orNull(
      list(plain(OneOf(CHANGEABLE))),
      'The properties of the inbox that were changed; null if `type` is not `inbox.changed`.',
    ),
    position: Position,
    size: OrNull(Count(''), "Bytes of a mail's source."),
    digest: OrNull(
      Digest(''),
      'SHA-256 of the sealed bytes of a mail on the log, or of the source of a mail that a fault dropped.',
    ),
  },
)

/** The query of GET /v1/inboxes/{id}/history. */
class ListHistory extends ListPage {
  override order: 'asc' | 'desc' = 'asc'

  @IsAsOf()
  as_of?: string
}

/** Lists the history of an inbox, also after its end, under both of its paths. */
@Controller(['v1/inboxes/:inboxId/history', 'v1/emails/:inboxId/history'])
@Tag('Inboxes')
export class HistoryController {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly past: PastStates,
  ) {}

  @Get()
  @RequireScope('audit', 'inboxes', 'read')
  @Describe({
    summary: "List an inbox's history",
    description:
      'Every event of the inbox, oldest first by default, without content. Available after the inbox has ended. A ' +
      '`Mayfly-Cursor` of the inbox is also a `cursor` of this list.',
    isWithoutPassword: true,
    answer: {
      description: 'A page of events.',
      schema: Type.Array(Event),
      headers: ['Link', 'Mayfly-As-Of'],
    },
    problems: ['not-yet-checkpointed', 'audit-log-contradicted'],
  })
  async listInboxHistory(
    @Caller() principal: Principal,
    @Param('inboxId') inboxId: string,
    @Query() query: ListHistory,
    @Reply() reply: FastifyReply,
  ) {
    const { id } = (await this.inboxes.find(principal, inboxId)).inbox
    const { as_of: asOf } = query
    const end = asOf === undefined ? Infinity : await this.past.historyEnd(principal, id, asOf, reply)
    const page = await offsetPageOf(id, query, reply, ({ to, ...range }) =>
      this.views.readComplete(id, () =>
        this.views.inboxes.history({ inboxId: id, ...range, to: Math.min(to, end) }),
      ),
    )
    const partition = this.views.partitionOf(id)
    return page.map(({ offset, ...entry }) => {
      const position = { topic: 'inbox-events', partition, offset } as const
      return eventJson({ ...entry, type: INBOX_EVENTS[entry.type].publicName, inboxId: id, position })
    })
  }
}
