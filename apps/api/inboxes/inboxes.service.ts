import { Injectable } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import { usedByInboxes } from '#libs/domain/account/quota.js'
import { isId, type InboxId } from '#libs/domain/ids/typeid.js'
import { decide, isOverRetention, type InboxCommand, type Refusal } from '#libs/domain/inbox/decide.js'
import type { Address, InboxDetails } from '#libs/domain/inbox/events.js'
import { faultsForInbox } from '#libs/domain/inbox/fault.js'
import { asOf, type ActiveInbox, type EndedInbox, type Inbox } from '#libs/domain/inbox/inbox.js'
import {
  ADDRESS_BYTES,
  defaultLifespan,
  makeAddress,
  makePassword,
  PASSWORD_BYTES,
  type Lifespan,
} from '#libs/domain/inbox/new-inbox.js'
import { MAX_TOKENS } from '#libs/domain/inbox/token.js'
import { AccountQuotas, isExcess, type QuotaReservation } from '#libs/ports/read-model/account-quotas.js'
import { detailsContext, sealJson, unsealJson, type SecretKey } from '#libs/ports/key-vault/sealing.js'
import { KeyForgottenError } from '#libs/ports/key-vault/key-vault.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import type { Principal } from '../access/principal.js'
import { writeOffsetCursor } from '../http/list-pages.js'
import { beingChanged, invalid, noResource, Problem, quotaExceeded, unavailable } from '../http/problems.js'
import type { Minting } from '../idempotency/minting.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { Instance } from '../instance.js'
import { OpenedMail } from '../messages/opened-mail.js'
import { InboxPasswords } from './inbox-passwords.js'
import { readLifespan } from '../http/rules.js'

/** An active inbox, and the offset after its last event when it was read. */
export interface OpenInbox {
  inbox: ActiveInbox
  endOffset: number
}

/** The properties of a new inbox that its creator chooses. */
export interface NewInbox {
  /** If undefined, the shorter of 24 hours and the plan's retention. */
  duration: string | undefined
  name: string | null
  labels: Readonly<Record<string, string>>
  isProtected: boolean
  /** Of a generated address. */
  domain: string
  chosen?: ChosenAddress
}

/** An address that no active inbox has, and the id of its new inbox. */
interface ChosenAddress {
  inboxId: InboxId
  address: Address
  /** Identifies the request and its repeats. */
  claim: string
}

/** A new inbox with its sealed details, and its password if it is protected. */
export interface Created extends OpenInbox {
  details: InboxDetails
  password: string | null
}

/** Whose inboxes are found. The inbox that was found becomes its subject. */
export type InboxOwner = Pick<Principal, 'accountId' | 'environment' | 'inboxId' | 'subject'>

/** Attempts to change an inbox, if other requests change it at the same time. */
const MAX_ATTEMPTS = 10

/** Creates and finds inboxes, checks their passwords and changes them, for all handlers under an inbox. */
@Injectable()
export class Inboxes {
  constructor(
    private readonly views: Views,
    private readonly instance: Instance,
    private readonly passwords: InboxPasswords,
    private readonly opened: OpenedMail,
    private readonly recorder: VisibleRecorder,
    private readonly quotas: AccountQuotas,
  ) {}

  /** Throws quota-exceeded. */
  async reserve(owner: Principal, count: number): Promise<QuotaReservation> {
    const reserved = await this.quotas.reserve(owner, usedByInboxes(count))
    if (isExcess(reserved)) throw quotaExceeded(reserved, this.instance.now())
    return reserved
  }

  /**
   * Creates one inbox, as `createAll` does. Throws quota-exceeded too, unless an earlier run of the request created it.
   */
  async create(principal: Principal, minting: Minting, wanted: NewInbox): Promise<Created> {
    const planned = this.plan(principal, minting, wanted)
    const reserved = await this.reserve(principal, 1).catch(async (refused: unknown) => {
      if ((await this.views.inboxes.inbox(planned.inboxId)) === null) throw refused
      return null
    })
    try {
      const [created] = await this.createPlanned(principal, [planned], reserved)
      if (created === undefined) throw new Error('no inbox was created')
      return created
    } finally {
      reserved?.release()
    }
  }

  /**
   * Creates inboxes within a reserved quota. Resolves once they accept mail; if it rejects, any of them may exist. Throws
   * invalid-request if one would outlive the retention of the plan, and the 410 of an inbox that an earlier run of the
   * request created and that has ended.
   */
  async createAll(
    principal: Principal,
    minting: Minting,
    wanted: readonly NewInbox[],
    reserved: QuotaReservation,
  ): Promise<Created[]> {
    const planned = wanted.map((each) => this.plan(principal, minting, each))
    return this.createPlanned(principal, planned, reserved)
  }

  private async createPlanned(
    principal: Principal,
    planned: readonly ReturnType<Inboxes['plan']>[],
    reserved: QuotaReservation | null,
  ): Promise<Created[]> {
    const keyed = await Promise.all(
      planned.map(async (each) => ({ ...each, key: await this.createKey(principal, each.inboxId) })),
    )
    const events = keyed.flatMap(({ key, details, password: _, ...facts }) => {
      const sealed = sealJson(key, detailsContext(facts.inboxId), details)
      return decide({ inbox: null, message: null }, { type: 'CreateInbox', ...facts, sealed }).events
    })
    if (events.length < planned.length) throw new Error('an inbox within its retention was refused')
    const positions = await this.recorder.record(events, principal)
    for (const position of positions) reserved?.fill(usedByInboxes(1), position)
    // Read from the views: in a repeat of the request, they are the inboxes that the first run created.
    const read = keyed.map(async ({ inboxId, key, password }) => {
      const open = await this.open(principal, inboxId)
      return { ...open, details: unsealDetails(key, open.inbox), password }
    })
    return Promise.all(read)
  }

  private plan(principal: Principal, minting: Minting, wanted: NewInbox) {
    const { accountId, environment, keyId, plan, defaultFaults } = principal
    const { duration, name, labels, isProtected, domain, chosen } = wanted
    const { retention, maxMessages } = plan
    const lifespan = lifespanOf(duration, retention)
    const inboxId = chosen?.inboxId ?? minting.id('inb')
    const address = chosen?.address ?? makeAddress(minting.bytes(ADDRESS_BYTES), domain)
    const password = isProtected ? makePassword(minting.bytes(PASSWORD_BYTES)) : null
    const details: InboxDetails = {
      name,
      ...(password === null ? {} : { passwordDigest: hashSecret(password) }),
      ...(chosen && { claim: chosen.claim }),
    }
    const owner = { accountId, environment, keyId }
    const now = this.instance.now()
    const faults = faultsForInbox(defaultFaults, inboxId)
    const facts = { inboxId, ...owner, address, lifespan, retention, labels, maxMessages, isProtected, now }
    return { ...facts, faults, cause: null, details, password }
  }

  /** Throws not-found, or the 410 of an inbox that has ended. */
  async open(owner: InboxOwner, id: string): Promise<OpenInbox> {
    const { inbox, endOffset } = await this.find(owner, id)
    if (inbox.state === 'active') return { inbox, endOffset }
    if (inbox.state === 'expired') throw hasEnded(inbox)
    const last = { inboxId: inbox.id, order: 'desc', from: 0, to: endOffset, limit: 1 } as const
    const [end] = await this.views.inboxes.history(last)
    throw hasEnded(inbox, end?.actor)
  }

  /** An inbox whose mail the caller may read. Throws as `open` and `requirePassword` do. */
  async openContent(principal: Principal, id: string): Promise<OpenInbox> {
    const found = await this.open(principal, id)
    await this.requirePassword(principal, found.inbox)
    return found
  }

  /**
   * Reads mail from complete views: a message that is missing from the result does not exist. The caller must have
   * checked the password with `openContent`. Throws as `open` does, and ViewsCatchingUpError.
   */
  readMail<Found>(
    principal: Principal,
    id: InboxId,
    read: (open: OpenInbox) => Promise<Found>,
  ): Promise<Found> {
    return this.views.readComplete(id, async () => {
      const open = await this.open(principal, id)
      const found = await read(open)
      // If the inbox has ended in the meantime, its messages were deleted with it.
      await this.open(principal, id)
      return found
    })
  }

  /**
   * Changes an inbox by events that have its next revision. If another change comes first on the log, this one is decided
   * again. It is done if there is nothing to change. Resolves with the inbox as it is then. Throws as `commandFor` and
   * `open` do, invalid-request, not-found for an unknown token, and busy.
   */
  async change(
    principal: Principal,
    before: OpenInbox,
    commandFor: (inbox: ActiveInbox) => InboxCommand | Promise<InboxCommand>,
  ): Promise<OpenInbox> {
    let current = before
    const { id } = before.inbox
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      const command = await commandFor(current.inbox)
      const { events, refusal } = decide({ inbox: current.inbox, message: null }, command)
      if (refusal !== null) throw problemOf(refusal, command)
      if (events.length === 0) return current
      await this.recorder.record(events, principal)
      current = await this.open(principal, id)
    }
    throw beingChanged('inbox', id)
  }

  /** The inboxes of the environment with these ids, in any state. Unknown ids are skipped. Throws ViewsCatchingUpError. */
  async findAll({ accountId, environment }: Principal, ids: readonly InboxId[]): Promise<Inbox[]> {
    const now = this.instance.now()
    const rows = await this.views.readComplete('inbox-events', () =>
      Promise.all(ids.map((id) => this.views.inboxes.inbox(id))),
    )
    return rows
      .flatMap((row) => (row === null ? [] : [asOf(row.inbox, now)]))
      .filter((inbox) => inbox.accountId === accountId && inbox.environment === environment)
  }

  /**
   * Deletes the active ones of the inboxes. Resolves with how many it deleted, once they can't be read any more. Skips
   * protected inboxes, unless the caller has the scope `admin`. If it rejects, any of them may be deleted.
   */
  async deleteAll(principal: Principal, inboxes: readonly Inbox[]): Promise<number> {
    const { keyId } = principal
    const now = this.instance.now()
    const events = inboxes
      .filter((inbox) => mayDelete(principal, inbox))
      .flatMap((inbox) => {
        const command = { type: 'DeleteInbox', inboxId: inbox.id, keyId, now } as const
        return decide({ inbox, message: null }, command).events
      })
    await this.recorder.record(events, principal)
    for (const { inboxId } of events) this.opened.forget(inboxId)
    return events.length
  }

  /** The details that are sealed with the inbox's key. Null if the key is deleted, because the inbox has ended. */
  async details(inbox: ActiveInbox): Promise<InboxDetails | null> {
    const lookup = await this.views.vault.find(inbox.id)
    if (lookup.state !== 'known') return null
    return unsealDetails(lookup.key, inbox)
  }

  /** As `requirePassword`, but an ended inbox requires no password, since its password is deleted. */
  async requirePasswordUnlessEnded(principal: Principal, inboxId: InboxId): Promise<void> {
    const row = await this.views.find(inboxId, () => this.views.inboxes.inbox(inboxId))
    const inbox = row === null ? null : asOf(row.inbox, this.instance.now())
    if (inbox?.state === 'active') await this.requirePassword(principal, inbox)
  }

  /** Throws the 403 or 429 of a protected inbox if the request does not have its password. */
  async requirePassword(principal: Principal, inbox: ActiveInbox): Promise<void> {
    if (!inbox.isProtected) return
    const details = await this.details(inbox)
    if (details === null) throw beingDeleted(inbox.id)
    if (details.passwordDigest === undefined) throw new Error(`the password of ${inbox.id} is missing`)
    await this.passwords.check(principal, inbox.id, details.passwordDigest)
  }

  /** Creates the key of a new inbox. If an earlier run created the inbox and it has ended, throws as `open`. */
  private async createKey(principal: Principal, inboxId: InboxId): Promise<SecretKey> {
    try {
      return await this.views.vault.create(inboxId)
    } catch (error) {
      if (!(error instanceof KeyForgottenError)) throw error
      await this.open(principal, inboxId)
      throw beingDeleted(inboxId)
    }
  }

  /**
   * Finds active and ended inboxes. Throws not-found, also for inboxes of another account or environment, or of another
   * token.
   */
  async find(owner: InboxOwner, id: string): Promise<{ inbox: Inbox; endOffset: number }> {
    const { accountId, environment, inboxId } = owner
    if (inboxId !== null && inboxId !== id) throw noResource('inbox', id)
    const row = isId('inb', id) ? await this.views.find(id, () => this.views.inboxes.inbox(id)) : null
    if (row !== null && row.inbox.accountId === accountId && row.inbox.environment === environment) {
      const inbox = asOf(row.inbox, this.instance.now())
      owner.subject = inbox
      if (inbox.state !== 'active') this.opened.forget(inbox.id)
      return { inbox, endOffset: row.endOffset }
    }
    throw noResource('inbox', id)
  }
}

/** Whether `deleteAll` deletes an inbox if it is active. */
export function mayDelete({ scopes }: Principal, { isProtected }: Inbox): boolean {
  return !isProtected || scopes.includes('admin')
}

export function unsealDetails(key: SecretKey, { id, sealed }: ActiveInbox): InboxDetails {
  return unsealJson(key, detailsContext(id), sealed) as InboxDetails
}

/** The 410 of an inbox that has ended, with the time, and the token or session, and the key, that deleted it. */
export function hasEnded({ id, state, endedAt, endedBy }: EndedInbox, actor: string | null = null): Problem {
  const by = endedBy === null ? '' : actor === null ? ` by ${endedBy}` : ` by ${actor}, made with ${endedBy},`
  const ended = endedAt.toISOString()
  return new Problem(state === 'deleted' ? 'inbox-deleted' : 'inbox-expired', {
    detail: `The inbox ${id} ${state === 'deleted' ? 'was deleted' : 'expired'}${by} at ${ended}.`,
    members: { ended_at: ended, ended_by: endedBy },
  })
}

/** The problem of a change that an inbox refuses. */
function problemOf(refusal: Refusal, command: InboxCommand): Problem {
  if (refusal.code === 'inbox-ended') return hasEnded(refusal.inbox)
  if (refusal.code === 'older-than-lifespan') {
    const detail = 'duration counts from the creation, and that time has passed'
    return invalid({ detail, pointer: '/duration' })
  }
  if (refusal.code === 'outlives-inbox') {
    const end = refusal.expiresAt.toISOString()
    return invalid({ detail: `expires_in may end at most at ${end}, with the inbox`, pointer: '/expires_in' })
  }
  if (refusal.code === 'too-many-tokens') {
    return invalid({ detail: `an inbox may have ${MAX_TOKENS} valid tokens: revoke one first`, pointer: '' })
  }
  if ('tokenId' in command) return noResource('inbox token', command.tokenId)
  throw new Error(`${command.type} was refused: ${refusal.code}`)
}

/** Throws invalid-request if it is longer than the retention. */
export function lifespanOf(
  duration: string | undefined,
  retention: Lifespan,
  pointer = '/duration',
): Lifespan {
  const lifespan = duration === undefined ? defaultLifespan(retention) : readLifespan(duration)
  // Checked before the key of a new inbox is created, since a refusal must not leave a key.
  if (isOverRetention(lifespan, retention)) {
    const detail = `duration may be at most ${retention.text}, the plan's retention`
    throw invalid({ detail, pointer })
  }
  return lifespan
}

/** The 503 of an inbox that has ended on the log, while the views still show it. */
export function beingDeleted(inboxId: InboxId): Problem {
  return unavailable('catching-up', `The inbox ${inboxId} is being deleted.`)
}

/** Sets `Mayfly-Cursor` to the position after all that the answer is about. */
export function setCursor(reply: FastifyReply, { inbox, endOffset }: OpenInbox): void {
  void reply.header('mayfly-cursor', writeOffsetCursor(inbox.id, { from: endOffset, to: null, end: null }))
}
