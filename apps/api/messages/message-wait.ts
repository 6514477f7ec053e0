import { Injectable } from '@nestjs/common'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import { type InboxId, isId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { Principal } from '../access/authenticator.js'
import { type MailRead, RequestBudgets } from '../http/budgets.js'
import { readMessageCursor } from '../http/list-pages.js'
import { isTransient } from '../http/problems.js'
import { Views } from '../http/views.js'
import { Instance } from '../instance.js'
import { noInbox, type OpenInbox } from '../inboxes/inboxes.service.js'
import type { WaitForMessage } from './list-messages.dto.js'
import { mismatches } from './match.js'
import { MessageReader } from './message-reader.js'
import { type OpenWait, OpenWaits, shuttingDown, tooManyWaits } from './open-waits.js'
import { ConsistentRead } from './consistent-read.js'

/** Who waits, and what for. */
export interface Waiting {
  principal: Principal
  inboxId: string
  wanted: WaitForMessage
  /** Asked before each further look. Rejects with a Problem if the key is no longer good, or that can't be told. */
  authenticate: () => Promise<void>
}

/** What a wait has come to. */
export interface Waited {
  inbox: ActiveInbox
  /** The first that matched; null if none did yet. */
  message: OpenedMessage | null
  /** Messages looked at in vain. */
  examined: number
  nearest: readonly NearMiss[]
  /** The first offset that was not looked at, or just past the message that matched. */
  position: number
}

type InInbox = Waiting & { inboxId: InboxId }

/** A signal may be lost: so often it looks without one. */
const RELOOK_MS = 10_000
/** The same while it can't be told what the inbox holds. */
const RETRY_MS = 500

/** Waits for the first message that matches: among those that are there, then among those that come. */
@Injectable()
export class MessageWait {
  constructor(
    private readonly views: Views,
    private readonly reads: ConsistentRead,
    private readonly reader: MessageReader,
    private readonly instance: Instance,
    private readonly waits: OpenWaits,
    private readonly budgets: RequestBudgets,
  ) {}

  /**
   * Resolves at the first match, or without one once the timeout is over or `departure` aborts. Throws what opening the
   * inbox throws, also if it ends meanwhile; what `authenticate` throws; shutting-down; too-many-waits; and what
   * keeps it from being told what the inbox holds, where that still does at the timeout.
   */
  async first({ inboxId, ...waiting }: Waiting, departure: AbortSignal): Promise<Waited> {
    if (!isId('inb', inboxId)) throw noInbox(inboxId)
    return this.waits.run(waiting.principal, departure, (wait) =>
      this.untilMatch({ ...waiting, inboxId }, wait),
    )
  }

  private async untilMatch(waiting: InInbox, wait: OpenWait): Promise<Waited> {
    const { inboxId } = waiting
    const deadlineMs = performance.now() + waiting.wanted.timeout * 1_000
    let waited: Waited | null = null
    let unsubscribe: (() => void) | null = null
    try {
      for (;;) {
        const seen: Waited | Error = await this.look(waiting, waited, wait).catch(ifTransient)
        if (!(seen instanceof Error)) waited = seen
        if (waited?.message != null) return waited
        if (wait.end === 'shutting-down') throw shuttingDown()
        if (wait.end === 'crowded-out') throw tooManyWaits()
        const leftMs = deadlineMs - performance.now()
        if (leftMs <= 0 || wait.end === 'client-gone') {
          if (seen instanceof Error) throw seen
          return seen
        }
        if (unsubscribe === null) {
          unsubscribe = await this.views.signals.subscribe(inboxChannel(inboxId), () => wait.bell.ring())
          // Something may have come between the look and the subscription.
          continue
        }
        await wait.bell.wait(Math.min(leftMs, seen instanceof Error ? RETRY_MS : this.patienceMs(seen)))
      }
    } finally {
      unsubscribe?.()
    }
  }

  /** No longer than until the inbox expires. */
  private patienceMs({ inbox: { expiresAt } }: Waited): number {
    const toExpiryMs = expiresAt.getTime() - this.instance.now().getTime()
    return Math.min(Math.max(toExpiryMs, 1), RELOOK_MS)
  }

  /** Looks at what has not been examined. What it finds counts only where all of it may be believed. */
  private async look(
    { principal, inboxId, wanted, authenticate }: InInbox,
    before: Waited | null,
    wait: OpenWait,
  ): Promise<Waited> {
    const lookThrough = async ({ inbox, endOffset }: OpenInbox, read: MailRead): Promise<Waited> => {
      const from = before?.position ?? positionIn(inboxId, wanted)
      // Views that were put back may end before it: what they show then has been examined.
      const to = Math.max(endOffset, from)
      let { examined, nearest } = before ?? { examined: 0, nearest: [] }
      const range = { order: wanted.order, from, to }
      for await (const { offset, message } of this.reader.opened(inbox, range, read)) {
        const { id, receivedAt, mail } = message
        // Once: to look through a long text for letters in either case takes long.
        const why = await mismatches(mail, wanted)
        if (why.length === 0) return { inbox, message, examined, nearest, position: offset + 1 }
        const miss = { id, receivedAt, subject: mail.subject, offset, mismatches: why }
        nearest = nearestWith(nearest, miss)
        examined += 1
      }
      return { inbox, message: null, examined, nearest, position: to }
    }
    const read = (open: OpenInbox) =>
      this.budgets
        .readFor(principal.accountId, wait.signal, (read) => lookThrough(open, read))
        .catch((error: unknown) => {
          if (wait.end === null || error !== wait.signal.reason) throw error
          const from = positionIn(inboxId, wanted)
          return before ?? { inbox: open.inbox, message: null, examined: 0, nearest: [], position: from }
        })
    if (before === null) return this.reads.first(principal, inboxId, { read })
    // What the first look has checked is the password. The key may have been revoked since.
    await authenticate()
    return this.reads.again(principal, inboxId, { read })
  }
}

function positionIn(inboxId: InboxId, { cursor }: WaitForMessage): number {
  return cursor === undefined ? 0 : readMessageCursor(inboxId, cursor).from
}

/** An error that may be over before the timeout is; throws any other. */
function ifTransient(error: unknown): Error {
  if (isTransient(error)) return error
  throw error
}

/** A message that was looked at and did not match. */
export interface NearMiss {
  id: MessageId
  subject: string | null
  receivedAt: Date
  /** Its place among the inbox's messages. */
  offset: number
  /** Each filter that it is not as, in words. */
  mismatches: readonly string[]
}

/** As many as a client is told of. */
const MOST = 5

/** The nearest of those known so far and one more: with the fewest mismatches, among them the newest, first. */
export function nearestWith(nearest: readonly NearMiss[], miss: NearMiss): readonly NearMiss[] {
  const place = nearest.findIndex((other) => isNearer(miss, other))
  if (place < 0) return nearest.length < MOST ? [...nearest, miss] : nearest
  return nearest.toSpliced(place, 0, miss).slice(0, MOST)
}

function isNearer(one: NearMiss, other: NearMiss): boolean {
  const further = one.mismatches.length - other.mismatches.length
  return further === 0 ? one.offset > other.offset : further < 0
}
