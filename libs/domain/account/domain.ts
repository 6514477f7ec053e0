import Type from 'typebox'
import * as field from '#libs/domain/event-sourcing/declare.js'
import { event, type EventOf, type ValueOf } from '#libs/domain/event-sourcing/declare.js'
import { accept, refuse, type Decision } from '#libs/domain/event-sourcing/decision.js'
import type { AccountId, DomainId } from '#libs/domain/ids/typeid.js'
import { haveSamePairs } from '#libs/domain/inbox/decide.js'
import { parseLifespan, type Lifespan } from '#libs/domain/inbox/new-inbox.js'
import type { DomainNotification } from '#libs/domain/webhook/events.js'
import { REMOVED } from '#libs/domain/webhook/webhook.js'

/*
 * Domains whose mail an account receives: its own ones, which it proves with DNS records, and hosted ones, which are
 * names below the mail domain.
 */

const lifespan = field.codec(
  Type.String({ pattern: '^[1-9][0-9]{0,5}[mhdw]$' }),
  (value: Lifespan) => value.text,
  decodeLifespan,
)

/** What becomes of mail to an address of the domain without an inbox. */
export const catchAll = field.union('action', {
  reject: {},
  /** Makes an inbox; null for the default lifespan. */
  create: { duration: field.optional(lifespan, null), labels: field.labels },
  deliver: { inboxId: field.id('inb') },
})
export type CatchAll = ValueOf<typeof catchAll>

/** The result of one record's check; `found` has the values in DNS. */
const recordCheck = field.object({
  status: field.oneOf(['missing', 'invalid', 'valid']),
  found: field.list(field.text),
})
export type RecordCheck = ValueOf<typeof recordCheck>

const domainIds = { accountId: field.id('acc'), domainId: field.id('dom') }
/** One more than the domain has. Of two concurrent events, the first on the log counts, and the other changes nothing. */
const revision = field.count

/** Domain events are on account-events, so that one order decides who has a name. */
export const DOMAIN_EVENTS = {
  DomainRegistered: event('domain.registered', {
    ...domainIds,
    /** In lower case, as A-labels (RFC 5890). */
    name: field.text,
    environment: field.text,
    isHosted: field.boolean,
    subdomains: field.boolean,
    catchAll,
    /** What the TXT record must have. */
    token: field.text,
    registeredAt: field.time,
  }),

  /** Null means unchanged. */
  DomainChanged: event('domain.changed', {
    ...domainIds,
    revision,
    subdomains: field.optional(field.boolean, null),
    catchAll: field.optional(catchAll, null),
    changedAt: field.time,
  }),

  DomainChecked: event('domain.checked', {
    ...domainIds,
    revision,
    name: field.text,
    /** The TXT record, the MX records, and those of all subdomains; absent if the name servers gave no clear answer. */
    results: field.partial({ ownership: recordCheck, mail: recordCheck, wildcard: recordCheck }),
    checkedAt: field.time,
  }),

  DomainRemoved: event('domain.removed', { ...domainIds, removedAt: field.time }, { isRemoval: true }),
}

export type DomainEvent = EventOf<typeof DOMAIN_EVENTS>
export type DomainRegistered = EventOf<typeof DOMAIN_EVENTS, 'DomainRegistered'>
export type DomainChanged = EventOf<typeof DOMAIN_EVENTS, 'DomainChanged'>
export type DomainChecked = EventOf<typeof DOMAIN_EVENTS, 'DomainChecked'>

export interface Domain extends Omit<DomainRegistered, 'type' | 'domainId' | 'registeredAt'> {
  id: DomainId
  /**
   * `verified` and `lapsed` domains hold their name: no other domain of that name can be verified, unless the TXT record
   * of the holder is absent. A `failed` domain is no longer checked, except on request.
   */
  state: 'pending' | 'verified' | 'failed' | 'lapsed'
  /** The last clear result of each record. */
  checks: Readonly<Record<keyof DomainChecked['results'], RecordCheck>>
  /** Whether the last check found all records, but another domain holds the name. */
  isNameTaken: boolean
  /** Counts changes and checks. */
  revision: number
  /** The failed checks in a row since the domain was verified, and the time of the first. */
  failures: number
  failingSince: Date | null
  createdAt: Date
  verifiedAt: Date | null
  /** The last check with a clear answer. */
  checkedAt: Date | null
  lapsedAt: Date | null
  nextCheckAt: Date | null
}

/** A removed domain is kept as a mark, so that a repeated registration does not create it again. */
export type DomainEntry = Domain | typeof REMOVED | null

export interface DomainSlice {
  domain: DomainEntry
  /** The other domain that holds the event's name. */
  holder: Domain | null
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** A domain that is not verified by then has failed. */
export const PENDING_MS = 72 * HOUR_MS
/** A verified domain lapses after this many failed checks in a row, over at least this time. */
const LAPSING_FAILURES = 3
const LAPSING_MS = 2 * DAY_MS
const MISSING: RecordCheck = { status: 'missing', found: [] }

/** Total and idempotent: for a repeated or misplaced event, returns the same entries. */
export function evolveDomain({ domain, holder }: DomainSlice, event: DomainEvent): DomainSlice {
  const same = { domain, holder }
  if (domain === REMOVED) return same
  if (event.type === 'DomainRegistered') {
    return domain === null ? { domain: registered(event, holder), holder } : same
  }
  if (domain === null) return same
  if (event.type === 'DomainRemoved') return { domain: REMOVED, holder }
  if (event.revision !== domain.revision + 1) return same
  return event.type === 'DomainChanged'
    ? { domain: changed(domain, event), holder }
    : checked(domain, holder, event)
}

function registered(
  { type: _type, domainId: id, registeredAt, ...facts }: DomainRegistered,
  holder: Domain | null,
): Domain {
  const { isHosted } = facts
  return {
    ...facts,
    id,
    state: !isHosted ? 'pending' : holder === null ? 'verified' : 'failed',
    checks: { ownership: MISSING, mail: MISSING, wildcard: MISSING },
    isNameTaken: false,
    revision: 0,
    failures: 0,
    failingSince: null,
    createdAt: registeredAt,
    verifiedAt: isHosted ? registeredAt : null,
    checkedAt: null,
    lapsedAt: null,
    nextCheckAt: isHosted ? null : registeredAt,
  }
}

function changed(domain: Domain, { revision, subdomains, catchAll, changedAt }: DomainChanged): Domain {
  return {
    ...domain,
    revision,
    subdomains: subdomains ?? domain.subdomains,
    catchAll: catchAll ?? domain.catchAll,
    nextCheckAt: subdomains === null || domain.nextCheckAt === null ? domain.nextCheckAt : changedAt,
  }
}

function checked(domain: Domain, holder: Domain | null, event: DomainChecked): DomainSlice {
  const { revision, checkedAt, results } = event
  const checks = { ...domain.checks, ...results }
  const wanted = ['ownership', 'mail', ...(domain.subdomains ? (['wildcard'] as const) : [])] as const
  const isFailure = wanted.some((record) => (results[record]?.status ?? 'valid') !== 'valid')
  const isComplete = wanted.every((record) => checks[record].status === 'valid')
  const hasAnswers = Object.keys(results).length > 0
  const known = {
    ...{ ...domain, checks, isNameTaken: isComplete, revision },
    checkedAt: hasAnswers ? checkedAt : domain.checkedAt,
  }
  const tomorrow = after(checkedAt, DAY_MS)
  if (isComplete && holder?.checks.ownership.status !== 'valid') {
    const verifiedAt = domain.state === 'verified' ? domain.verifiedAt : checkedAt
    const verified = { state: 'verified', verifiedAt, nextCheckAt: tomorrow } as const
    return {
      domain: { ...known, ...verified, isNameTaken: false, failures: 0, failingSince: null, lapsedAt: null },
      holder: holder && { ...holder, state: 'failed', nextCheckAt: null },
    }
  }
  switch (domain.state) {
    case 'pending': {
      const ageMs = checkedAt.getTime() - domain.createdAt.getTime()
      if (ageMs >= PENDING_MS) return { domain: { ...known, state: 'failed', nextCheckAt: null }, holder }
      return { domain: { ...known, nextCheckAt: after(checkedAt, pendingDelayMs(ageMs)) }, holder }
    }
    case 'failed':
      return { domain: known, holder }
    case 'lapsed':
      return { domain: { ...known, nextCheckAt: tomorrow }, holder }
    case 'verified': {
      if (!isFailure) return { domain: { ...known, nextCheckAt: tomorrow }, holder }
      const failures = domain.failures + 1
      const failingSince = domain.failingSince ?? checkedAt
      const isLapsed =
        failures >= LAPSING_FAILURES && checkedAt.getTime() - failingSince.getTime() >= LAPSING_MS
      const failing = { ...known, failures, failingSince, nextCheckAt: tomorrow }
      return { domain: isLapsed ? { ...failing, state: 'lapsed', lapsedAt: checkedAt } : failing, holder }
    }
  }
}

/** Every minute for ten minutes, then after a fifth of the domain's age, at most an hour. */
function pendingDelayMs(ageMs: number): number {
  return ageMs < 10 * MINUTE_MS ? MINUTE_MS : Math.min(ageMs / 5, HOUR_MS)
}

function after(time: Date, ms: number): Date {
  return new Date(time.getTime() + ms)
}

/** The notification that a check caused; null if it caused none, or if a later check has replaced it. */
export function notificationOf(
  { verifiedAt, lapsedAt }: Domain,
  { checkedAt }: DomainChecked,
): DomainNotification['type'] | null {
  if (verifiedAt?.getTime() === checkedAt.getTime()) return 'domain.verified'
  return lapsedAt?.getTime() === checkedAt.getTime() ? 'domain.lapsed' : null
}

export function holdsName({ state }: Domain): boolean {
  return state === 'verified' || state === 'lapsed'
}

/** A name has at most this many labels, so that looking up the parents of a name is bounded. */
export const MAX_NAME_LABELS = 10

interface CommandBase {
  accountId: AccountId
  domainId: DomainId
  now: Date
}

export type DomainCommand =
  | (Omit<DomainRegistered, 'type' | 'registeredAt'> & {
      type: 'RegisterDomain'
      /** The names of the account's domains, according to the view. */
      names: readonly string[]
      now: Date
    })
  /** Null means unchanged. */
  | (CommandBase & Pick<DomainChanged, 'subdomains' | 'catchAll'> & { type: 'ChangeDomain' })
  | (CommandBase & Pick<DomainChecked, 'results'> & { type: 'RecordCheck' })
  | (CommandBase & { type: 'RemoveDomain' })

/** Why a command was refused. Expected, not an error. */
export type DomainRefusal = { code: 'unknown-domain' } | { code: 'known-name' }

/** Checks a command against the view, which may lag. Neither an event nor a refusal means that there is nothing to change. */
export function decideDomain(
  domain: DomainEntry,
  command: DomainCommand,
): Decision<DomainEvent, DomainRefusal> {
  if (command.type === 'RegisterDomain') {
    const { names, now, ...facts } = command
    if (domain !== null) return accept()
    if (names.includes(facts.name)) return refuse({ code: 'known-name' })
    return accept({ ...facts, type: 'DomainRegistered', registeredAt: now })
  }
  const { accountId, domainId, now } = command
  if (domain === REMOVED || domain?.accountId !== accountId) return refuse({ code: 'unknown-domain' })
  const revision = domain.revision + 1
  switch (command.type) {
    case 'ChangeDomain': {
      const subdomains = command.subdomains === domain.subdomains ? null : command.subdomains
      const catchAll = isSameCatchAll(command.catchAll, domain.catchAll) ? null : command.catchAll
      if (subdomains === null && catchAll === null) return accept()
      const facts = { accountId, domainId, revision, subdomains, catchAll }
      return accept({ type: 'DomainChanged', ...facts, changedAt: now })
    }
    case 'RecordCheck': {
      const facts = { accountId, domainId, revision, name: domain.name, results: command.results }
      return accept({ type: 'DomainChecked', ...facts, checkedAt: now })
    }
    case 'RemoveDomain':
      return accept({ type: 'DomainRemoved', accountId, domainId, removedAt: now })
  }
}

function isSameCatchAll(one: CatchAll | null, other: CatchAll): boolean {
  if (one?.action === 'create' && other.action === 'create') {
    return one.duration?.text === other.duration?.text && haveSamePairs(one.labels, other.labels)
  }
  if (one?.action === 'deliver' && other.action === 'deliver') return one.inboxId === other.inboxId
  return one?.action === other.action
}

function decodeLifespan(text: string): Lifespan {
  const found = parseLifespan(text)
  if (found === null) throw new TypeError(`not a lifespan: "${text}"`)
  return found
}
