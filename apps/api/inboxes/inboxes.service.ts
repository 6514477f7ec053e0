import { Injectable } from '@nestjs/common'
import { detailsContext, sealJson, unsealJson } from '#libs/ports/key-vault/content.js'
import { KeyForgottenError } from '#libs/ports/key-vault/key-vault.js'
import type { SecretKey } from '#libs/ports/key-vault/seal.js'
import { ADDRESS_BYTES, makeAddress } from '#libs/domain/inbox/address.js'
import { decide, isOverRetention } from '#libs/domain/inbox/decide.js'
import type { InboxDetails } from '#libs/domain/inbox/events.js'
import {
  asOf,
  type ActiveInbox,
  type EndedInbox,
  type Inbox,
  makePassword,
  PASSWORD_BYTES,
} from '#libs/domain/inbox/inbox.js'
import { defaultLifespan, parseLifespan, type Lifespan } from '#libs/domain/inbox/lifespan.js'
import type { InboxListQuery } from '#libs/ports/read-model/queries.js'
import { isId, type InboxId } from '#libs/domain/ids/typeid.js'
import { hashSecret } from '#libs/domain/account/secret-hash.js'
import type { Principal } from '../access/authenticator.js'
import type { Minting } from '../access/minting.js'
import { Changes } from '../changes.js'
import { Instance } from '../instance.js'
import { invalid, notFound, Problem, unavailable } from '../http/problems.js'
import { Views } from '../http/views.js'
import { OpenedMail } from '../messages/opened-mail.js'
import type { CreateInbox } from './inbox-requests.dto.js'
import { InboxPasswords } from './inbox-passwords.js'

/** An inbox that can be used, and where its messages end as of the reading. */
export interface OpenInbox {
  inbox: ActiveInbox
  endOffset: number
}

/** How to read an inbox's mail. */
export interface ReadMail<Found> {
  /** What was found before in an inbox that has not changed since; null if it must be read. */
  recall?: (open: OpenInbox) => Found | null
  read: (open: OpenInbox) => Promise<Found>
}

@Injectable()
export class Inboxes {
  constructor(
    private readonly views: Views,
    private readonly changes: Changes,
    private readonly instance: Instance,
    private readonly passwords: InboxPasswords,
    private readonly opened: OpenedMail,
  ) {}

  /**
   * Resolves once the inbox is durable and can be read; with its password, this once, where it is protected. Run again
   * with the same minting, it resolves with the inbox that the first run made; throws the 410 of one that has ended.
   */
  async create(
    principal: Principal,
    wanted: CreateInbox,
    minting: Minting,
  ): Promise<OpenInbox & { details: InboxDetails; password: string | null }> {
    const { now, settings } = this.instance
    const { accountId, environment, keyId, plan } = principal
    const lifespan = lifespanOf(wanted.duration, plan.retention)
    // A refusal must not leave a key behind.
    if (isOverRetention(lifespan, plan.retention)) throw overRetention(plan.retention)
    const inboxId = minting.id('inb')
    const address = makeAddress(minting.bytes(ADDRESS_BYTES), settings.mailDomain)
    const isProtected = wanted.password_protected ?? false
    const password = isProtected ? makePassword(minting.bytes(PASSWORD_BYTES)) : null
    const details: InboxDetails = {
      name: wanted.name ?? null,
      ...(password === null ? {} : { passwordDigest: hashSecret(password) }),
    }
    const key = await this.keyFor(principal, inboxId)
    const { events } = decide(
      { inbox: null, message: null },
      {
        type: 'CreateInbox',
        inboxId,
        accountId,
        environment,
        keyId,
        address,
        lifespan,
        retention: plan.retention,
        labels: wanted.labels ?? {},
        maxMessages: plan.maxMessages,
        isProtected,
        sealed: sealJson(key, detailsContext(inboxId), details),
        now: now(),
      },
    )
    if (events.length === 0) throw new Error('an inbox within its retention was refused')
    await this.changes.record(events, principal)
    // As the views have it: where an earlier run made it, that one is on the log first.
    const found = await this.open(principal, inboxId)
    const made = unsealJson(key, detailsContext(inboxId), found.inbox.sealed) as InboxDetails
    return { ...found, details: made, password }
  }

  /** The key of an inbox that is made; throws as `open` does if an earlier run made it, and it has ended. */
  private async keyFor(principal: Principal, inboxId: InboxId): Promise<SecretKey> {
    try {
      return await this.views.vault.create(inboxId)
    } catch (error) {
      if (!(error instanceof KeyForgottenError)) throw error
      await this.open(principal, inboxId)
      throw comingToItsEnd(inboxId)
    }
  }

  /** Throws not-found, or the 410 of an inbox that has ended. */
  async open(principal: Principal, id: string): Promise<OpenInbox> {
    const { inbox, endOffset } = await this.find(principal, id)
    if (inbox.state !== 'active') throw hasEnded(inbox)
    return { inbox, endOffset }
  }

  /** An inbox whose mail may be read by this caller; throws as `open` does, and a 403 or 429 without its password. */
  async openContent(principal: Principal, id: string): Promise<OpenInbox> {
    const found = await this.open(principal, id)
    await this.requirePassword(principal, found.inbox)
    return found
  }

  /**
   * Reads mail from complete views: a message that is missing from the result does not exist. The caller has checked the
   * password with `openContent`. Throws what `open` throws, and ViewsCatchingUpError.
   */
  readMail<Found>(principal: Principal, id: InboxId, { recall, read }: ReadMail<Found>): Promise<Found> {
    return this.views.readComplete(id, async () => {
      const open = await this.open(principal, id)
      const recalled = recall?.(open) ?? null
      if (recalled !== null) return recalled
      const found = await read(open)
      // If the inbox has ended meanwhile, its messages went with it.
      await this.open(principal, id)
      return found
    })
  }

  /** What only the inbox's key reveals of it; null if it is forgotten, the inbox's end being on the log. */
  async details(inbox: ActiveInbox): Promise<InboxDetails | null> {
    const lookup = await this.views.vault.find(inbox.id)
    if (lookup.state !== 'known') return null
    return unsealJson(lookup.key, detailsContext(inbox.id), inbox.sealed) as InboxDetails
  }

  list(
    principal: Principal,
    query: Omit<InboxListQuery, 'accountId' | 'environment' | 'now'>,
  ): Promise<Inbox[]> {
    const { accountId, environment } = principal
    return this.views.readComplete('inbox-events', () =>
      this.views.inboxes.listInboxes({ ...query, accountId, environment, now: this.instance.now() }),
    )
  }

  /**
   * Resolves once the end is durable and in force here; a repeat resolves with the first end. A protected inbox
   * takes its password, or the scope admin.
   */
  async delete(principal: Principal, id: string): Promise<EndedInbox> {
    const { inbox } = await this.find(principal, id)
    const { keyId, scopes } = principal
    if (inbox.state === 'active' && !scopes.includes('admin')) await this.requirePassword(principal, inbox)
    const now = this.instance.now()
    const command = { type: 'DeleteInbox', inboxId: inbox.id, keyId, now } as const
    const { events, refusal } = decide({ inbox, message: null }, command)
    if (refusal?.code === 'inbox-ended') throw hasEnded(refusal.inbox)
    await this.changes.record(events, principal)
    this.opened.forget(inbox.id)
    const row = await this.views.inboxes.inbox(inbox.id)
    // Views that were lost since are being rebuilt.
    if (row === null || row.inbox.state === 'active') throw comingToItsEnd(inbox.id)
    if (row.inbox.state !== 'deleted') throw hasEnded(row.inbox)
    return row.inbox
  }

  /**
   * Throws as `openContent` does for want of the password; lets everybody of its tenant pass where the inbox has ended,
   * whose password has gone with its key.
   */
  async requirePasswordUnlessEnded(principal: Principal, inboxId: InboxId): Promise<void> {
    const row = await this.views.find(inboxId, () => this.views.inboxes.inbox(inboxId))
    const inbox = row === null ? null : asOf(row.inbox, this.instance.now())
    if (inbox?.state === 'active') await this.requirePassword(principal, inbox)
  }

  private async requirePassword(principal: Principal, inbox: ActiveInbox): Promise<void> {
    if (!inbox.isProtected) return
    const details = await this.details(inbox)
    if (details === null) throw comingToItsEnd(inbox.id)
    if (details.passwordDigest === undefined) throw new Error(`no password is known of ${inbox.id}`)
    await this.passwords.check(principal, inbox.id, details.passwordDigest)
  }

  /** Also one that has ended. Another tenant's inbox is answered exactly as one that is not there: throws not-found. */
  async find(principal: Principal, id: string): Promise<{ inbox: Inbox; endOffset: number }> {
    const { accountId, environment } = principal
    const row = isId('inb', id) ? await this.views.find(id, () => this.views.inboxes.inbox(id)) : null
    if (row !== null && row.inbox.accountId === accountId && row.inbox.environment === environment) {
      const inbox = asOf(row.inbox, this.instance.now())
      principal.subject = inbox
      if (inbox.state !== 'active') this.opened.forget(inbox.id)
      return { inbox, endOffset: row.endOffset }
    }
    throw noInbox(id)
  }
}

function lifespanOf(duration: string | undefined, retention: Lifespan): Lifespan {
  const lifespan = duration === undefined ? defaultLifespan(retention) : parseLifespan(duration)
  if (lifespan === null) throw new TypeError(`not a duration: ${String(duration)}`)
  return lifespan
}

function overRetention({ text }: Lifespan): Problem {
  return invalid({ detail: `duration may be at most ${text}, the plan's retention`, pointer: '/duration' })
}

export function noInbox(id: string): Problem {
  return notFound(`There is no inbox ${id.slice(0, 60)}.`)
}

/** The 410 of an inbox that has ended, with when and by which key. */
export function hasEnded({ id, state, endedAt, endedBy }: EndedInbox): Problem {
  const by = endedBy === null ? '' : ` by ${endedBy}`
  const ended = endedAt.toISOString()
  return new Problem(state === 'deleted' ? 'inbox-deleted' : 'inbox-expired', {
    detail: `The inbox ${id} ${state === 'deleted' ? 'was deleted' : 'expired'}${by} at ${ended}.`,
    members: { ended_at: ended, ended_by: endedBy },
  })
}

/** The views still show an inbox that the log has ended. */
export function comingToItsEnd(inboxId: InboxId): Problem {
  return unavailable('catching-up', `The inbox ${inboxId} is being deleted.`)
}
