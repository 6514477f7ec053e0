import type { ApiKey } from '#libs/domain/account/account.js'
import type { Domain } from '#libs/domain/account/domain.js'
import type { Member } from '#libs/domain/account/member.js'
import type { AccountId, InboxId, MemberId } from '#libs/domain/ids/typeid.js'
import { faults } from '#libs/domain/inbox/fault.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { fieldsOfAccount, fieldsOfDomain, fieldsOfKey, fieldsOfMember, fieldsOfWebhook } from './activity.js'
import type { ListQuery, OffsetQuery } from './lists.js'
import type { ReadModel } from './queries.js'
import type { MessageRow } from './views.js'

/** What the state is read from. Nothing in it depends on the engine, or on where events are on the log. */
export type AccountViews = Pick<ReadModel, 'accounts' | 'webhooks' | 'queries'>

/** A thing of an account: its row, and what is shown of it. */
export interface StateItem {
  id: string
  row: object
  /** Without content, secrets, their hashes, and URLs; personal data is sealed. */
  shown: Readonly<Record<string, unknown>>
}

/** Earlier than any expiry, so that only events end inboxes. */
const NO_EXPIRY = new Date(0)
const AT_ONCE = 500

/**
 * The state of an account: the account, its keys, members, domains and webhooks, its inboxes and their messages, always in
 * the same order. `environments` are those of its webhooks and inboxes.
 */
export async function* accountState(
  views: AccountViews,
  accountId: AccountId,
  environments: Iterable<string>,
): AsyncGenerator<StateItem> {
  const { accounts, webhooks } = views
  const account = await accounts.account(accountId)
  if (account === null) return
  yield { id: accountId, row: account, shown: fieldsOfAccount(account) }
  for await (const key of allOf<ApiKey>((query) => accounts.listKeys(accountId, query))) {
    yield { id: key.id, row: key, shown: fieldsOfKey(key) }
  }
  for (const state of ['active', 'invited'] as const) {
    const list = (query: ListQuery<MemberId>) => accounts.listMembers(accountId, { ...query, state })
    for await (const member of allOf<Member>(list)) {
      yield { id: member.id, row: member, shown: fieldsOfMember(member) }
    }
  }
  for await (const domain of allOf<Domain>((query) => accounts.listDomains(accountId, query))) {
    yield { id: domain.id, row: domain, shown: fieldsOfDomain(domain) }
  }
  for (const environment of [...environments].toSorted()) {
    const owner = { accountId, environment }
    for await (const webhook of allOf<Webhook>((query) => webhooks.listWebhooks(owner, query))) {
      yield { id: webhook.id, row: webhook, shown: fieldsOfWebhook(webhook) }
    }
    for (const state of ['active', 'deleted', 'expired'] as const) {
      const wanted = { ...owner, state, labels: [], now: NO_EXPIRY }
      for await (const inbox of allOf<Inbox>((query) => views.queries.listInboxes({ ...query, ...wanted }))) {
        yield { id: inbox.id, row: inbox, shown: fieldsOfInbox(inbox) }
        yield* stateInInbox(views, inbox.id)
      }
    }
  }
}

async function* stateInInbox(
  { webhooks, queries }: AccountViews,
  inboxId: InboxId,
): AsyncGenerator<StateItem> {
  for await (const webhook of allOf<Webhook>((query) => webhooks.listWebhooks({ inboxId }, query))) {
    yield { id: webhook.id, row: webhook, shown: fieldsOfWebhook(webhook) }
  }
  const messages = allFrom<MessageRow>(0, (range) => queries.listMessages({ inboxId, ...range }))
  for await (const { message } of messages) {
    if (message.state !== 'present') continue
    const shown = { inbox_id: inboxId, received_at: message.receivedAt, size: message.size }
    yield { id: message.id, row: message, shown }
  }
}

function fieldsOfInbox(inbox: Inbox) {
  const { address, state, environment, keyId, labels, isProtected, createdAt, tokens } = inbox
  const facts = {
    ...{ address, state, environment, created_by: keyId, password_protected: isProtected },
    labels: Object.fromEntries(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1))),
    ...{ created_at: createdAt, message_count: inbox.messageCount, received_count: inbox.receivedCount },
    tokens: tokens.map(({ id, access, expiresAt, revokedAt }) => ({
      ...{ id, access, expires_at: expiresAt, revoked_at: revokedAt },
    })),
  }
  if (inbox.state !== 'active') return { ...facts, ended_at: inbox.endedAt, ended_by: inbox.endedBy }
  const { duration, expiresAt, lastMessageAt, storedBytes, droppedCount, revision } = inbox
  return {
    ...facts,
    ...{ duration, expires_at: expiresAt, last_message_at: lastMessageAt, stored_bytes: storedBytes },
    ...{ dropped_count: droppedCount, faults: faults.encode(inbox.faults), revision },
  }
}

/** All entries of a list in the order of the log, from an offset on. */
export async function* allFrom<Entry extends { offset: number }>(
  from: number,
  read: (range: OffsetQuery) => Promise<Entry[]>,
): AsyncGenerator<Entry> {
  let page: Entry[]
  do {
    page = await read({ order: 'asc', from, to: Number.MAX_SAFE_INTEGER, limit: AT_ONCE })
    yield* page
    from = (page.at(-1)?.offset ?? 0) + 1
  } while (page.length === AT_ONCE)
}

/** All items of a list in the order of their ids. */
export async function* allOf<Item extends { id: string }>(
  read: (query: ListQuery<Item['id']>) => Promise<Item[]>,
): AsyncGenerator<Item> {
  let after: Item['id'] | null = null
  do {
    const page: Item[] = await read({ order: 'asc', after, limit: AT_ONCE })
    yield* page
    after = page.length === AT_ONCE ? (page.at(-1)?.id ?? null) : null
  } while (after !== null)
}
