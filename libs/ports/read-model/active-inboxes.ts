import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { InboxListQuery } from './inbox-lists.js'
import type { MailQueries } from './queries.js'

export interface ActiveInboxesQuery extends Pick<InboxListQuery, 'accountId' | 'environment' | 'labels'> {
  /** Only inboxes after this one. */
  after: InboxId | null
  pageSize: number
  now: () => Date
}

/** The active inboxes of an environment that have all of these labels, in pages, oldest first. */
export async function* activeInboxes(
  listInboxes: MailQueries['listInboxes'],
  { accountId, environment, labels, after: start, pageSize, now }: ActiveInboxesQuery,
): AsyncGenerator<ActiveInbox[]> {
  const query = { accountId, environment, labels, state: 'active', order: 'asc', limit: pageSize } as const
  for (let after = start; ;) {
    const page = await listInboxes({ ...query, after, now: now() })
    yield page.filter((inbox) => inbox.state === 'active')
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) return
    after = last.id
  }
}
