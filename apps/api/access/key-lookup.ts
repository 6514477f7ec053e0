import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { planWithLimits, unknownPlan, type Plan, type PlanTable } from '#libs/domain/account/access.js'
import { memberIdOf, type Account } from '#libs/domain/account/account.js'
import type { Member } from '#libs/domain/account/member.js'
import { isActive, type ConsoleSession } from '#libs/domain/account/console-sessions.js'
import { keyState } from '#libs/domain/account/key-expiry.js'
import type { AccountId, ConsoleSessionId, MemberId } from '#libs/domain/ids/typeid.js'
import type { KnownKey } from '#libs/ports/read-model/account-views.js'
import type { AccountQueries } from '#libs/ports/read-model/queries.js'
import type { Views } from '../views.js'

/*
 * Finds the key of a secret, the session of a console, and the plan of an account.
 */

/**
 * A session of the console with its account, the key that it was started with and the member who uses it, as read from the
 * views. Without a member it has the access of an administrator.
 */
export interface KnownSession extends KnownKey {
  session: ConsoleSession
}

/** A changed key applies everywhere after this time, even if signals are lost. */
const MAX_AGE_MS = 500
const MAX_LOOKUPS = 10_000

/**
 * Finds keys by the hash of a secret, and sessions by their id. Caches them for half a second, so that a busy key costs two
 * lookups a second instead of several for each request. What is not found is not cached, so a new key works at once.
 */
export class KnownKeys {
  /** How often `forgetAll` was called. */
  changes = 0
  private readonly keys = new RecentLookups<KnownKey>()
  private readonly sessions = new RecentLookups<KnownSession>()
  private readonly accounts = new RecentLookups<Account>()
  private readonly members = new RecentLookups<Member>()

  constructor(
    private readonly views: Pick<Views, 'readAccounts'>,
    private readonly now: () => Date,
  ) {}

  /**
   * Null if no key ever had this secret. Rejects with ViewsCatchingUpError if the views may lack the key or its
   * revocation, and with the errors of the views.
   */
  find(secretHash: string): Promise<KnownKey | null> {
    return this.keys.find(secretHash, () =>
      this.views.readAccounts((accounts) => accounts.keyByHash(secretHash)),
    )
  }

  /** Null if there is no such account. Rejects as `find` does. */
  account(id: AccountId): Promise<Account | null> {
    return this.accounts.find(id, () => this.views.readAccounts((accounts) => accounts.account(id)))
  }

  /** Null if there is no such member. Rejects as `find` does. */
  member(id: MemberId): Promise<Member | null> {
    return this.members.find(id, () => this.views.readAccounts((accounts) => accounts.member(id)))
  }

  /**
   * Null if the account has no such session, or it has ended: it ends with its member, or else its key. Rejects as `find`
   * does.
   */
  async session(accountId: AccountId, sessionId: ConsoleSessionId): Promise<KnownSession | null> {
    const known = await this.sessions.find(sessionId, () =>
      this.views.readAccounts((accounts) => readSession(accounts, accountId, sessionId)),
    )
    const now = this.now()
    return known !== null && isActive(known.session, now) && isOfActive(known, now) ? known : null
  }

  /** Must be called when an account or a key has changed. */
  forgetAll(): void {
    this.changes += 1
    this.keys.forgetAll()
    this.sessions.forgetAll()
    this.accounts.forgetAll()
    this.members.forgetAll()
  }
}

/** Whether its member, or else its key, has not ended, and the account still accepts such sessions. */
export function isOfActive({ account, session, key, member }: KnownSession, now: Date): boolean {
  if (account.requiresProvider && !session.isIdentified) return false
  const isKeyActive = keyState(key, now) === 'active'
  if (session.memberId === null) return isKeyActive
  // A personal key that started it must still be valid. Usage is counted for any other key, also for one that has ended.
  return member?.state === 'active' && (isKeyActive || memberIdOf(key) !== member.id)
}

async function readSession(
  accounts: AccountQueries,
  accountId: AccountId,
  sessionId: ConsoleSessionId,
): Promise<KnownSession | null> {
  const account = await accounts.account(accountId)
  const session = account?.consoleSessions.find(({ id }) => id === sessionId)
  return account === null || session === undefined ? null : readParties(accounts, account, session)
}

/** Adds the key and the member of a session or link. Null if the views do not have the key. */
export async function readParties(
  accounts: AccountQueries,
  account: Account,
  session: ConsoleSession,
): Promise<KnownSession | null> {
  const { keyId, memberId } = session
  const [key, member] = await Promise.all([
    accounts.key(keyId),
    memberId === null ? null : accounts.member(memberId),
  ])
  return key === null ? null : { account, session, key, member }
}

class RecentLookups<Found> {
  private readonly lookups = new LRUCache<string, Promise<Found | null>>({
    max: MAX_LOOKUPS,
    ttl: MAX_AGE_MS,
  })

  find(name: string, read: () => Promise<Found | null>): Promise<Found | null> {
    const cached = this.lookups.get(name)
    if (cached !== undefined) return cached
    const found = read()
    this.lookups.set(name, found)
    const forget = () => {
      if (this.lookups.peek(name) === found) this.lookups.delete(name)
    }
    found.then((known) => {
      if (known === null) forget()
    }, forget)
    return found
  }

  forgetAll(): void {
    this.lookups.clear()
  }
}

/** The configured plans, and the plan of each account. */
export class Plans {
  private readonly logged = new Set<string>()

  constructor(
    private readonly table: PlanTable,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  get names(): string[] {
    return [...this.table.keys()]
  }

  named(name: string): Plan | null {
    return this.table.get(name) ?? null
  }

  /** The plan of an account. If it is no longer configured, the account keeps its data but has no API access. */
  of(account: Pick<Account, 'plan' | 'limits'>): Plan {
    const plan = this.find(account)
    if (plan !== null) return plan
    const { plan: name } = account
    if (!this.logged.has(name)) {
      this.logged.add(name)
      this.logger.warn(
        { plan: name, configured: this.names },
        'accounts are on a plan that is not configured: they have no API access',
      )
    }
    return unknownPlan(name)
  }

  /** The plan of an account with the account's own limits; null if it is not configured. */
  find({ plan: name, limits }: Pick<Account, 'plan' | 'limits'>): Plan | null {
    const plan = this.named(name)
    return plan && planWithLimits(plan, limits)
  }
}
