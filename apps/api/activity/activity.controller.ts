import { Controller, Get, Query } from '@nestjs/common'
import { IsOptional, IsString, MaxLength } from 'class-validator'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { ACCOUNT_EVENTS } from '#libs/domain/account/events.js'
import { codec, list, object, plain, text } from '#libs/domain/event-sourcing/declare.js'
import { isId } from '#libs/domain/ids/typeid.js'
import { INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import type { ActivityEntry, Shown } from '#libs/ports/read-model/activity.js'
import { IdOf, OneOf, orNull, resource, time } from '#libs/runtime/resource.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { Reply } from '../http/headers.js'
import { IsCursor, IsLimit, IsOrder, setNextLink } from '../http/list-pages.js'
import { NDJSON, prefersLines, ProducesLines } from '../http/media-types.js'
import { IfGiven, IsTime, readTime } from '../http/rules.js'
import { readEnvironmentCursor, writeEnvironmentCursor } from '../messages/environment-cursor.js'
import { mergePartitions } from '../messages/partition-merge.js'
import { Describe, DescribeProperty, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'

const ACTORS = { key: 'key', mem: 'member', ses: 'session', tok: 'token' } as const

const actor = object({
  type: plain(
    OneOf(
      [...Object.values(ACTORS), 'system'],
      '`session`: of the console, started with a key. `system`: Mayfly itself, or received mail.',
    ),
  ),
  id: orNull(text, 'Null for `system`.'),
  name: orNull(
    text,
    "The member's email address, or the key's name; null for others, and for keys of an operator.",
  ),
})

const anyJson = codec(
  Type.Unsafe<Shown>({ description: 'Any JSON value.' }),
  (value: Shown) => value,
  (data) => data,
)

const { schema: ActivitySchema, json: activityJson } = resource(
  'Activity',
  {
    description: 'A change of an account, or of something in it, without content.',
    examples: [
      {
        id: 'evt_01jd6b90czf2jb8z0w6s8p1q3r',
        time: '2026-11-21T09:30:02.417Z',
        action: 'member.changed',
        actor: { type: 'member', id: 'mem_01jd6b2k8nf3gq6r9t2w5y8z1c', name: 'ana@example.com' },
        subject: 'mem_01jd6b3m4pf3gq6r9t2w5y8z1d',
        environment: 'production',
        outcome: 'applied',
        request_id: 'req_5f0e8a6c1b2d4f7a9c3e6b8d0f2a4c6e',
        remote_address: '203.0.113.7',
        changes: [{ field: 'role', from: 'viewer', to: 'developer' }],
      },
    ],
  },
  {
    id: plain(IdOf('evt', 'The id of the event.')),
    time: time('When it happened.'),
    action: plain(Type.String({ description: 'The type of the event.' })),
    actor,
    subject: plain(Type.String({ description: 'The id of what was changed.' })),
    environment: plain(
      Type.String({ description: 'Of the inbox, or else of the key or session that was used.' }),
    ),
    outcome: plain(
      OneOf(
        ['applied', 'ignored'],
        '`ignored`: the change came too late, such as the second of two that exclude each other, and had no effect.',
      ),
    ),
    requestId: orNull(text, "The request's `X-Request-Id`; null if no request caused it."),
    remoteAddress: orNull(text, 'The address that the request came from.'),
    changes: list(
      object({
        field: plain(Type.String({ description: 'The name of what has changed.' })),
        from: anyJson,
        to: anyJson,
      }),
      { description: 'Of inboxes, only which fields: their names and labels are not shown.' },
    ),
  },
)

class ListActivity {
  @IsLimit({ max: 1_000 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor('The position to continue from, as in `Link` or `Mayfly-Cursor`.')
  cursor?: string

  @DescribeProperty('The id of the key, member, session or token that did it.')
  @IsOptional()
  @MaxLength(40, { message: 'actor must be an id' })
  @IsString({ message: 'actor must be sent once' })
  actor?: string

  @DescribeProperty('An action, or its first part: `member` for all of `member.…`.', { examples: ['member'] })
  @IsOptional()
  @MaxLength(100, { message: 'type must be an action' })
  @IsString({ message: 'type must be sent once' })
  type?: string

  @DescribeProperty('An environment.')
  @IsOptional()
  @MaxLength(64, { message: 'environment must be the name of an environment' })
  @IsString({ message: 'environment must be sent once' })
  environment?: string

  @DescribeProperty('The id of what was changed.')
  @IsOptional()
  @MaxLength(40, { message: 'subject must be an id' })
  @IsString({ message: 'subject must be sent once' })
  subject?: string

  @DescribeProperty('The earliest time (RFC 3339).')
  @IfGiven()
  @IsTime()
  from?: string

  @DescribeProperty('The time before which it was (RFC 3339).')
  @IfGiven()
  @IsTime()
  to?: string
}

/** A page ends after this number of entries, even if few of them match. */
const MAX_EXAMINED = 2_000

type Entry = ActivityEntry & { partition: number }

/** Who changed what in the account. */
@Controller('v1/activity')
@Tag('Accounts')
export class ActivityController {
  constructor(private readonly views: Views) {}

  @Get()
  @RequireScope('admin', 'audit')
  @ProducesLines()
  @Describe({
    summary: 'List who changed what',
    description:
      'The changes of the account, its keys, members, domains and webhooks, and what was done with its inboxes, newest first by default. Members who are restricted to environments see only these. A page may have fewer items than `limit`, even none, while `Link` has a next one.\n\nTo export all to another system, read with `order=asc`, and later continue with the last `Mayfly-Cursor`: nothing is left out or repeated. With `Accept: application/x-ndjson`, each item is a line of the answer.',
    answer: {
      description: 'A page of changes.',
      schema: Type.Array(ActivitySchema),
      line: ActivitySchema,
      headers: ['Mayfly-Cursor', 'Link'],
    },
  })
  async listActivity(
    @Caller() principal: Principal,
    @Query() query: ListActivity,
    @Reply() reply: FastifyReply,
  ) {
    const page = await this.views.readComplete('inbox-events', () =>
      this.views.readAccounts(() => this.page(principal, query, reply)),
    )
    const nameOf = await this.namesOf(principal, page)
    const items = page.map(({ type, keyId, origin, isEffective, ...entry }) => {
      const id = entry.actor ?? keyId
      const kind = id === null ? 'system' : ACTORS[id.slice(0, id.indexOf('_')) as keyof typeof ACTORS]
      return activityJson({
        ...entry,
        action: actionOf(type),
        actor: { type: kind, id, name: id === null ? null : (nameOf.get(id) ?? null) },
        outcome: isEffective ? 'applied' : 'ignored',
        requestId: origin?.requestId ?? null,
        remoteAddress: origin?.remoteAddress ?? null,
      })
    })
    if (!prefersLines(reply.request)) return items
    void reply.type(NDJSON)
    return items.map((item) => `${JSON.stringify(item)}\n`).join('')
  }

  /** Sets `Mayfly-Cursor`, and `Link` if there is a next page. */
  private async page(principal: Principal, query: ListActivity, reply: FastifyReply): Promise<Entry[]> {
    const { limit, order, cursor } = query
    const { accountId } = principal
    // No environment has this name.
    const owner = { accountId, environment: '*' }
    const end = await this.endOffsets()
    const start =
      cursor === undefined
        ? { from: end.map(() => 0), range: null }
        : readEnvironmentCursor(owner, end.length, cursor)
    const from = [...start.from]
    const to = [...(start.range?.to ?? end)]
    const found: Entry[] = []
    let examined = 0
    let hasMore = false
    for await (const entry of this.entries(accountId, { order, from: [...from], to: [...to] })) {
      if (found.length === limit || examined === MAX_EXAMINED) {
        hasMore = true
        break
      }
      examined += 1
      if (order === 'asc') from[entry.partition] = entry.offset + 1
      else to[entry.partition] = entry.offset
      if (isWanted(entry, query, principal)) found.push(entry)
    }
    const next = order === 'asc' ? { from, range: null } : { from, range: { to, end: to } }
    if (hasMore) setNextLink(reply, writeEnvironmentCursor(owner, next))
    const isAtEnd = !hasMore || order === 'desc'
    void reply.header(
      'mayfly-cursor',
      writeEnvironmentCursor(owner, { from: isAtEnd ? end : from, range: null }),
    )
    return found
  }

  /** Of all partitions of inbox-events, and of account-events as the last one. */
  private entries(
    accountId: Principal['accountId'],
    range: { order: 'asc' | 'desc'; from: number[]; to: number[] },
  ): AsyncGenerator<Entry> {
    const partitions = this.views.partitionCount()
    return mergePartitions(range, ({ partition, ...one }) =>
      partition === partitions
        ? this.views.accounts.activity(accountId, one)
        : this.views.inboxes.inboxActivity({ accountId, partition, ...one }),
    )
  }

  private async endOffsets(): Promise<number[]> {
    const ofAccounts = await this.views.inboxes.progress({ topic: 'account-events', partition: 0 })
    return [...(await this.views.endOffsets()), ofAccounts?.position ?? 0]
  }

  /** The names of the keys and members of the account by their ids. */
  private async namesOf(
    { accountId }: Principal,
    page: readonly Entry[],
  ): Promise<ReadonlyMap<string, string>> {
    const ids = new Set(page.map(({ actor, keyId }) => actor ?? keyId))
    const { accounts } = this.views
    const names = await Promise.all(
      [...ids].map(async (id): Promise<[string, string][]> => {
        if (id === null) return []
        const key = isId('key', id) ? await accounts.key(id) : null
        const member = isId('mem', id) ? await accounts.member(id) : null
        if (key?.accountId === accountId) return [[id, key.name]]
        return member?.accountId === accountId ? [[id, member.email]] : []
      }),
    )
    return new Map(names.flat())
  }
}

function actionOf(type: ActivityEntry['type']): string {
  return type in ACCOUNT_EVENTS
    ? ACCOUNT_EVENTS[type as keyof typeof ACCOUNT_EVENTS].name
    : INBOX_EVENTS[type as keyof typeof INBOX_EVENTS].publicName
}

function isWanted(
  { type, actor, keyId, environment, subject, time }: Entry,
  query: ListActivity,
  { member }: Principal,
): boolean {
  const action = actionOf(type)
  return (
    (query.type === undefined || action === query.type || action.startsWith(`${query.type}.`)) &&
    (query.actor === undefined || query.actor === (actor ?? keyId)) &&
    (query.environment === undefined || query.environment === environment) &&
    (query.subject === undefined || query.subject === subject) &&
    (query.from === undefined || time >= readTime(query.from)) &&
    (query.to === undefined || time < readTime(query.to)) &&
    (member?.environments ?? [environment]).includes(environment)
  )
}
