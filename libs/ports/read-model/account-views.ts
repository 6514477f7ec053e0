import { memberIdOf, type Account, type ApiKey } from '#libs/domain/account/account.js'
import { SCOPES } from '#libs/domain/account/access.js'
import type { Member } from '#libs/domain/account/member.js'
import { MAX_NAME_LABELS, type Domain } from '#libs/domain/account/domain.js'
import {
  brand,
  isId,
  type AccountId,
  type DomainId,
  type InboxId,
  type KeyId,
  type MemberId,
  type WebhookId,
} from '#libs/domain/ids/typeid.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import type { ActivityEntry } from './activity.js'
import {
  ALL,
  keyRange,
  pageOfRows,
  rowOf,
  type LeaseQuery,
  type ListQuery,
  type OffsetQuery,
} from './lists.js'
import { holdersOf } from './projections.js'
import type { WebhookScope } from './tables.js'
import * as tables from './tables.js'
import type { IndexInfo, TableOf, ViewStore } from './view-store.js'
import type { MailOwner } from './views.js'

/** The fields of an inbox that decide which webhooks its events are delivered to. */
export interface WebhookedInbox {
  inboxId: InboxId
  accountId: AccountId
  environment: string
}

export interface KnownKey {
  account: Account
  key: ApiKey
  /** Of a personal key; null for a service key. */
  member: Member | null
}

/** account-events has one partition. */
const PARTITION = 0
const FIRST_HUNDRED = { order: 'asc', after: null, limit: 100 } as const
/** Scopes or accounts in one round trip. Its answer has the rows of all their webhooks. */
const MAX_GROUPS_AT_ONCE = 500

/** Queries of accounts, their keys and domains, without removed domains (account-events). */
export function accountViews(store: ViewStore) {
  async function leased<Row>(queue: IndexInfo, table: TableOf<Row>, query: LeaseQuery): Promise<Row[]> {
    const nowMs = query.now.getTime()
    const claim = {
      partition: PARTITION,
      group: [],
      nowMs,
      untilMs: nowMs + query.leaseMs,
      limit: query.limit,
    }
    return (await store.claim(queue, table, claim)).flatMap(({ row }) => row ?? [])
  }

  /** The member that a personal key belongs to; null for a service key. */
  async function memberOf(key: ApiKey): Promise<Member | null> {
    const id = memberIdOf(key)
    return id === null ? null : rowOf(store, tables.members, { owner: null, key: id })
  }

  return {
    /** Finds a key by the hex SHA-256 of any secret that it has had, with the member that a personal key belongs to. */
    async keyByHash(secretHash: string): Promise<KnownKey | null> {
      const range = { group: [], from: secretHash, to: `${secretHash}!`, order: 'asc', limit: 1 } as const
      const [found] = await store.entriesWithRows(tables.keyHashes, tables.apiKeys, [
        { ...range, partition: PARTITION },
      ])
      const key = found?.[0]?.row ?? null
      const account =
        key === null ? null : await rowOf(store, tables.accounts, { owner: null, key: key.accountId })
      if (key === null || account === null) return null
      return { account, key, member: await memberOf(key) }
    },

    account: (id: AccountId): Promise<Account | null> =>
      rowOf(store, tables.accounts, { owner: null, key: id }),

    /** Ordered by id. */
    listAccounts: (query: ListQuery<AccountId>): Promise<Account[]> =>
      pageOfRows(store, tables.accountList, tables.accounts, keyRange(PARTITION, [], query)),

    memberOf,

    key: (id: KeyId): Promise<ApiKey | null> => rowOf(store, tables.apiKeys, { owner: null, key: id }),

    /** An account's keys, or a member's personal ones, including revoked and expired ones, ordered by id. */
    listKeys: (holder: AccountId | MemberId, query: ListQuery<KeyId>): Promise<ApiKey[]> =>
      pageOfRows(store, tables.keyList, tables.apiKeys, keyRange(PARTITION, [holder], query)),

    /** All of an account's keys that are neither revoked nor recorded as expired, ordered by id. Their number is limited. */
    async activeKeys(
      accountId: AccountId,
    ): Promise<Pick<ApiKey, 'id' | 'environment' | 'scopes' | 'createdBy'>[]> {
      const [found = []] = await store.entries(tables.activeKeys, [keyRange(PARTITION, [accountId], ALL)])
      return found.map(({ key, value }) => {
        const [environment = '', scopes = '', author = ''] = value.split(' ')
        const held = scopes.split(',')
        return {
          id: brand('key', key),
          environment,
          createdBy: isId('key', author) || isId('mem', author) ? author : null,
          scopes: SCOPES.filter((scope) => held.includes(scope)),
        }
      })
    },

    /** Leases keys that have expired or are due for a notice, earliest first. */
    leaseDueKeys: (query: LeaseQuery): Promise<ApiKey[]> => leased(tables.dueKeys, tables.apiKeys, query),

    /** Leases closed accounts that are not erased yet, those that were closed first. */
    leaseDueAccounts: (query: LeaseQuery): Promise<Account[]> =>
      leased(tables.dueAccounts, tables.accounts, query),

    /** Also one who was invited or removed. */
    member: (id: MemberId): Promise<Member | null> => rowOf(store, tables.members, { owner: null, key: id }),

    /** An account's members, or its invitations that are not used or revoked, ordered by id. */
    listMembers(
      accountId: AccountId,
      { state, ...query }: ListQuery<MemberId> & { state: 'active' | 'invited' },
    ): Promise<Member[]> {
      const range = keyRange(PARTITION, [accountId, state], query)
      return pageOfRows(store, tables.memberList, tables.members, range)
    },

    /**
     * The oldest members, former members or invitations of any account with one of these lookups of an address or hashes of
     * an identity; at most a hundred of each.
     */
    async people(state: Member['state'], lookups: readonly string[]): Promise<Member[]> {
      const ranges = lookups.map((lookup) => keyRange(PARTITION, [state, lookup], FIRST_HUNDRED))
      const found = await store.entriesWithRows(tables.people, tables.members, ranges)
      const members = found.flat().flatMap(({ row }) => row ?? [])
      return [...new Map(members.map((member) => [member.id, member])).values()]
    },

    /** What the addresses of an account's members, and those who are invited, are found by. Their number is limited. */
    async memberLookups(accountId: AccountId): Promise<string[]> {
      const ranges = ['active', 'invited'].map((state) => keyRange(PARTITION, [accountId, state], ALL))
      return (await store.entries(tables.memberList, ranges)).flat().map(({ value }) => value)
    },

    /** Who changed what of an account, its keys, members, domains and webhooks. */
    async activity(accountId: AccountId, range: OffsetQuery): Promise<ActivityEntry[]> {
      const of = { ...range, partition: PARTITION, group: [accountId] }
      const [found = []] = await store.entries(tables.activityOrder, [of])
      return found.map(tables.activityEntryOf)
    },

    async domain(id: DomainId): Promise<Domain | null> {
      const row = await rowOf(store, tables.domains, { owner: null, key: id })
      return row === REMOVED ? null : row
    },

    /** An account's domains, ordered by id. */
    async listDomains(accountId: AccountId, query: ListQuery<DomainId>): Promise<Domain[]> {
      const range = keyRange(PARTITION, [accountId], query)
      return (await pageOfRows(store, tables.domainList, tables.domains, range)).filter(
        (row) => row !== REMOVED,
      )
    },

    /** The names of all of an account's domains. Their number is limited. */
    async domainNames(accountId: AccountId): Promise<string[]> {
      const [found = []] = await store.entries(tables.domainList, [keyRange(PARTITION, [accountId], ALL)])
      return found.map(({ value }) => value)
    },

    /**
     * The domain that holds the name, given as A-labels in lower case; or else the closest parent that holds its name and
     * includes subdomains. It is verified or lapsed. One round trip.
     */
    async domainHolding(name: string): Promise<Domain | null> {
      const labels = name.split('.')
      const first = Math.max(0, labels.length - MAX_NAME_LABELS)
      const names = labels.slice(first, -1).map((_, index) => labels.slice(first + index).join('.'))
      const holders = await holdersOf(store, names)
      return holders.find((domain) => domain !== null && (domain.name === name || domain.subdomains)) ?? null
    },

    /** Leases domains whose DNS records are to be checked, earliest first. */
    async leaseDueDomains(query: LeaseQuery): Promise<Domain[]> {
      return (await leased(tables.dueDomains, tables.domains, query)).filter((row) => row !== REMOVED)
    },
  }
}

/** Queries of webhooks, without removed ones (account-events). */
export function webhookViews(store: ViewStore) {
  async function webhooksIn(index: IndexInfo, groups: readonly string[][]): Promise<Webhook[]> {
    const found: Webhook[] = []
    for (const some of chunksOf(groups, MAX_GROUPS_AT_ONCE)) {
      const ranges = some.map((group) => keyRange(PARTITION, group, ALL))
      const lists = await store.entriesWithRows(index, tables.webhooks, ranges)
      for (const { row } of lists.flat()) if (row !== null && row !== REMOVED) found.push(row)
    }
    return found
  }

  return {
    async webhook(id: WebhookId): Promise<Webhook | null> {
      const row = await rowOf(store, tables.webhooks, { owner: null, key: id })
      return row === REMOVED ? null : row
    },

    /** How many webhooks of environments an account has. */
    async countWebhooks(accountId: AccountId): Promise<number> {
      const [total] = await store.totals(tables.accountWebhooks, ['*'], [accountId])
      return total?.count ?? 0
    },

    /** The webhooks of exactly that scope, including disabled ones, ordered by id. */
    async listWebhooks(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]> {
      const range = keyRange(PARTITION, tables.webhookGroup(scope), query)
      return (await pageOfRows(store, tables.webhookList, tables.webhooks, range)).filter(
        (row) => row !== REMOVED,
      )
    },

    /**
     * The active webhooks of these inboxes and of their environments, or of these environments, each once, in no particular
     * order. One round trip for a few hundred inboxes.
     */
    async webhooksFor(inboxes: readonly (WebhookedInbox | MailOwner)[]): Promise<Webhook[]> {
      const groups = new Map<string, string[]>()
      for (const inbox of inboxes) {
        const { accountId, environment } = inbox
        for (const scope of [inbox, { accountId, environment }]) {
          const group = tables.webhookGroup(scope)
          groups.set(group.join(' '), group)
        }
      }
      return webhooksIn(tables.activeWebhooks, [...groups.values()])
    },

    /** The active webhooks that are notified of the quotas of these accounts. */
    quotaWebhooks: (accountIds: readonly AccountId[]): Promise<Webhook[]> =>
      webhooksIn(
        tables.quotaWebhooks,
        accountIds.map((id) => [id]),
      ),
  }
}
