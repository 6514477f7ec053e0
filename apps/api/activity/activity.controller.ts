import { Controller, Get, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { ACCOUNT_EVENTS } from '#libs/domain/account/events.js'
import { personalText } from '#libs/domain/account/personal-data.js'
import { codec, list, object, text } from '#libs/domain/event-sourcing/declare.js'
import { isId } from '#libs/domain/ids/typeid.js'
import { HISTORY_EVENTS, INBOX_EVENTS } from '#libs/domain/inbox/events.js'
import { originOwner } from '#libs/ports/event-log/cloud-event.js'
import { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import type { ActivityEntry, Json } from '#libs/ports/read-model/activity.js'
import { IdOf, OneOf, orNull, resource, time } from '#libs/runtime/resource.js'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { Reply } from '../http/headers.js'
import { setNextLink } from '../http/list-pages.js'
import { NDJSON, prefersLines, ProducesLines } from '../http/media-types.js'
import { readTime } from '../http/rules.js'
import { readEnvironmentCursor, writeEnvironmentCursor } from '../messages/environment-cursor.js'
import { mergePartitions } from '../messages/partition-merge.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Views } from '../views.js'
import { isMatch, isOfType, ListActivity } from './list-activity.js'

const ACTORS = { key: 'key', mem: 'member', ses: 'session', tok: 'token' } as const

const ACCOUNT_ACTIONS = Object.values(ACCOUNT_EVENTS).map(({ name }) => name)
const INBOX_ACTIONS = HISTORY_EVENTS.filter(({ fields }) => !('messageId' in fields)).map(
  ({ publicName }) => publicName,
)

const actor = object({
  type: OneOf(
    [...Object.values(ACTORS), 'operator', 'system'],
    '`session`: of the console, started with a key. `operator`: of the server. `system`: Mayfly itself, or for the role of a member an identity provider.',
  ),
  id: orNull(text, 'Null for `operator` and `system`.'),
  name: orNull(text, "The member's email address, or the key's name; null for others."),
})

const anyJson = codec(
  Type.Unsafe<Json>({}),
  (value: Json) => value,
  (data) => data,
)

const { schema: ActivitySchema, json: activityJson } = resource(
  'Activity',
  {
    description: 'A change of an account, or in it.',
    examples: [
      {
        id: 'evt_01jd6b90czf2jb8z0w6s8p1q3r',
        time: '2026-11-21T09:30:02.417Z',
        action: 'member.changed',
        actor: { type: 'member', id: 'mem_01jd6b2k8nf3gq6r9t2w5y8z1c', name: 'ana@example.com' },
        subject: 'mem_01jd6b3m4pf3gq6r9t2w5y8z1d',
        environment: null,
        outcome: 'applied',
        request_id: 'req_5f0e8a6c1b2d4f7a9c3e6b8d0f2a4c6e',
        remote_address: '203.0.113.7',
        changes: [{ field: 'role', from: 'viewer', to: 'developer' }],
      },
    ],
  },
  {
    id: IdOf('evt', 'The id of the event.'),
    time: time('When it happened.'),
    action: Type.String({ description: 'Such as `member.changed`.' }),
    actor,
    subject: Type.String({ description: 'The id of what was changed.' }),
    environment: orNull(text, 'Of what was changed; null if that is of the whole account.'),
    outcome: OneOf(['applied', 'ignored'], '`ignored`: it had no effect, because another change came first.'),
    requestId: orNull(
      text,
      "The request's `X-Request-Id`; null for `operator`, and if no request caused it.",
    ),
    remoteAddress: orNull(text, 'Where the request came from.'),
    changes: list(
      object({
        field: text,
        from: anyJson,
        to: anyJson,
      }),
      {
        description: 'Both values are null if they are not shown.',
      },
    ),
  },
)

/** A page ends after this number of entries, even if few of them match. */
const MAX_EXAMINED = 2_000
/** How much earlier than `from` an entry may be, although earlier ones of another partition are later. */
const CLOCK_SLACK_MS = 60_000

type Entry = ActivityEntry & { partition: number }

/** Who changed what in the account. */
@Controller('v1/activity')
@Tag('Accounts')
export class ActivityController {
  constructor(
    private readonly views: Views,
    private readonly personal: PersonalData,
  ) {}

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
    const { accountId } = principal
    const authorOf = await this.authorsOf(principal, page)
    const shownOf = async ({ type, keyId, actor, origin, isEffective, ...entry }: Entry) => {
      const author = authorOf.get(actor ?? keyId) ?? SYSTEM
      const shown = author.type === 'operator' ? undefined : origin
      return activityJson({
        ...entry,
        changes: await this.open(entry),
        action: actionOf(type),
        actor: author,
        outcome: isEffective ? 'applied' : 'ignored',
        requestId: shown?.requestId ?? null,
        remoteAddress: shown
          ? await this.personal.openAddress(originOwner({ accountId, actor }), shown.remoteAddress)
          : null,
      })
    }
    const items = await Promise.all(page.map(shownOf))
    if (!prefersLines(reply.request)) return items
    void reply.type(NDJSON)
    return items.map((item) => `${JSON.stringify(item)}\n`).join('')
  }

  /** The changes with personal data in plain text, which is null once it is erased. */
  private async open({ subject, changes }: Pick<Entry, 'subject' | 'changes'>): Promise<Entry['changes']> {
    if (!isId('acc', subject) && !isId('mem', subject)) return changes
    const open = (value: Json) =>
      isSealed(value) ? this.personal.show(subject, personalText.decode(value)) : value
    return Promise.all(
      changes.map(async ({ field, from, to }) => ({ field, from: await open(from), to: await open(to) })),
    )
  }

  /** Sets `Mayfly-Cursor`, and `Link` if there is a next page. */
  private async page(principal: Principal, query: ListActivity, reply: FastifyReply): Promise<Entry[]> {
    const { limit, order, cursor } = query
    const { accountId } = principal
    // No environment has this name.
    const owner = { accountId, environment: '*' }
    const ends = await this.endOffsets()
    const start =
      cursor === undefined
        ? { from: ends.map(() => 0), range: null }
        : readEnvironmentCursor(owner, ends.length, cursor)
    // The end of the list when its first page was read. Views that are built again may be behind the cursor.
    const end = start.range?.end ?? ends.map((offset, index) => Math.max(offset, start.from[index] ?? 0))
    const from = [...start.from]
    const to = [...(start.range?.to ?? end)]
    const fromMs = query.from === undefined ? -Infinity : readTime(query.from).getTime()
    const found: Entry[] = []
    let examined = 0
    let hasMore = false
    for await (const entry of this.entries(accountId, query, { order, from: [...from], to: [...to] })) {
      if (order === 'desc' && entry.time.getTime() < fromMs - CLOCK_SLACK_MS) break
      if (found.length === limit || examined === MAX_EXAMINED) {
        hasMore = true
        break
      }
      examined += 1
      if (order === 'asc') from[entry.partition] = entry.offset + 1
      else to[entry.partition] = entry.offset
      if (isWanted(entry, query, principal)) found.push(entry)
    }
    const next = order === 'asc' ? { from, range: null } : { from, range: { to, end } }
    if (hasMore) setNextLink(reply, writeEnvironmentCursor(owner, next))
    // After everything that this list has, also on the pages of a descending one.
    const after = hasMore && order === 'asc' ? from : end
    void reply.header('mayfly-cursor', writeEnvironmentCursor(owner, { from: after, range: null }))
    return found
  }

  /** Of all partitions of inbox-events, and of account-events as the last one; only those that have the type. */
  private entries(
    accountId: Principal['accountId'],
    { type }: ListActivity,
    range: { order: 'asc' | 'desc'; from: number[]; to: number[] },
  ): AsyncGenerator<Entry> {
    const partitions = this.views.partitionCount()
    const hasType = (actions: readonly string[]) => actions.some((action) => isOfType(action, type))
    const [ofAccounts, ofInboxes] = [hasType(ACCOUNT_ACTIONS), hasType(INBOX_ACTIONS)]
    return mergePartitions(range, async ({ partition, ...one }) => {
      if (partition === partitions) return ofAccounts ? this.views.accounts.activity(accountId, one) : []
      return ofInboxes ? this.views.inboxes.inboxActivity({ accountId, partition, ...one }) : []
    })
  }

  private async endOffsets(): Promise<number[]> {
    const ofAccounts = await this.views.inboxes.progress({ topic: 'account-events', partition: 0 })
    return [...(await this.views.endOffsets()), ofAccounts?.position ?? 0]
  }

  /** Who did what is on a page, by the id of the key, member, session or token. */
  private async authorsOf(
    { accountId }: Principal,
    page: readonly Entry[],
  ): Promise<ReadonlyMap<string | null, Author>> {
    const { accounts } = this.views
    const ids = new Set(page.flatMap(({ actor, keyId }) => actor ?? keyId ?? []))
    const authors = await Promise.all(
      [...ids].map(async (id): Promise<[string, Author]> => {
        const type = ACTORS[id.slice(0, id.indexOf('_')) as keyof typeof ACTORS]
        const key = isId('key', id) ? await accounts.key(id) : null
        const member = isId('mem', id) ? await accounts.member(id) : null
        if (key !== null && key.accountId !== accountId) return [id, OPERATOR]
        const email = member && (await this.personal.show(member.id, member.email))
        return [id, { type, id, name: key?.name ?? email }]
      }),
    )
    return new Map(authors)
  }
}

interface Author {
  type: (typeof ACTORS)[keyof typeof ACTORS] | 'operator' | 'system'
  id: string | null
  name: string | null
}

const OPERATOR: Author = { type: 'operator', id: null, name: null }
const SYSTEM: Author = { type: 'system', id: null, name: null }

/** Whether it is personal data, as `personalText` encodes it. */
function isSealed(value: Json): boolean {
  return typeof value === 'object' && value !== null && 'sealed' in value
}

function actionOf(type: ActivityEntry['type']): string {
  return type in ACCOUNT_EVENTS
    ? ACCOUNT_EVENTS[type as keyof typeof ACCOUNT_EVENTS].name
    : INBOX_EVENTS[type as keyof typeof INBOX_EVENTS].publicName
}

/** Whether a page has an entry: it matches, and the caller may see its environment. */
function isWanted(entry: Entry, query: ListActivity, { member }: Principal): boolean {
  const { type, actor, keyId, environment } = entry
  const environments = member?.environments ?? null
  return (
    isMatch({ ...entry, type: actionOf(type), actor: actor ?? keyId }, query) &&
    (environments === null || (environment !== null && environments.includes(environment)))
  )
}
