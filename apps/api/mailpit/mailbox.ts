import { Injectable } from '@nestjs/common'
import { decide } from '#libs/domain/inbox/decide.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { SecretKey } from '#libs/ports/key-vault/content.js'
import type { Principal } from '../access/principal.js'
import type { MailRead } from '../http/budgets.js'
import { notFound, Problem, unavailable } from '../http/problems.js'
import { VisibleRecorder, Views } from '../views.js'
import { beingDeleted, Inboxes, noInbox } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { MessageReader, type PresentMessage } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'

/** The newest inboxes of an environment, whose mail is read. */
const MAX_INBOXES = 1_000
/** The newest messages of these inboxes. Mailpit stores 500 by default. */
export const MAX_MESSAGES = 1_000
const MAX_DELETED = 10_000
/** Messages that are deleted at once. */
const BATCH = 50
/** Rows that are read at once. */
const CHUNK = 20

export interface PlacedMessage {
  inbox: ActiveInbox
  message: PresentMessage
}

type ReadableMessage = PlacedMessage & { key: SecretKey }

/** An inbox in the merge of all inboxes by time. */
interface Source {
  inbox: ActiveInbox
  key: SecretKey | null
  /** Messages that have been read and not been taken, newest first. */
  next: PresentMessage[]
  /** The offset to read more messages before. */
  to: number
  /** The time of the next message; until it has been read, a time that it is not after. */
  nextMs: number
}

/** All inboxes of an environment as one mailbox, without those that have a password. */
@Injectable()
export class Mailbox {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly reader: MessageReader,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    private readonly opened: OpenedMail,
  ) {}

  /**
   * Reads the newest messages, newest first, from views that are complete. `total` is their number. Throws
   * ViewsCatchingUpError, and the errors of `read` and `work`.
   */
  async read<Result>(
    principal: Principal,
    read: MailRead,
    work: (newest: AsyncIterable<ReadableMessage>, total: number) => Promise<Result>,
    max = MAX_MESSAGES,
  ): Promise<Result> {
    return this.views.readComplete('inbox-events', async () => {
      const inboxes = await this.list(principal)
      const total = inboxes.reduce((sum, { messageCount }) => sum + messageCount, 0)
      return work(this.newest(inboxes, max, read), Math.min(total, max))
    })
  }

  /** Null if the message, or its inbox, has been deleted meanwhile. Throws the errors of `read`. */
  async open({ key, inbox, message }: ReadableMessage, read: MailRead): Promise<OpenedMessage | null> {
    await read.pace(message.size)
    return this.reader.open(key, inbox.id, message)
  }

  /**
   * The message with an id, or the newest one for `latest`. Throws not-found if there is none, or if its inbox has a
   * password, and the 410 of a message or an inbox that has ended.
   */
  async find(principal: Principal, id: string, read: MailRead): Promise<PlacedMessage> {
    if (id !== 'latest') return this.findById(principal, id)
    return this.read(principal, read, async (newest) => {
      for await (const found of newest) {
        principal.subject = found.inbox
        return found
      }
      throw notFound('There are no messages.')
    })
  }

  /**
   * Deletes messages by their ids. Messages that don't exist are ignored, as in Mailpit. Throws the errors of `read`, as
   * `deleteAll` does; a repeat continues.
   */
  async delete(principal: Principal, ids: ReadonlySet<string>, read: MailRead): Promise<void> {
    for (const batch of batchesOf([...ids])) {
      for (const _ of batch) await read.pace(0)
      const finding = batch.map((id) => this.findById({ ...principal }, id).catch(nullIfMissing))
      const found = await Promise.all(finding)
      await this.deleteAtOnce(
        principal,
        found.filter((each) => each !== null),
      )
    }
  }

  /** Deletes all messages. Throws busy if there were more than one request deletes. */
  async deleteAll(principal: Principal, read: MailRead): Promise<void> {
    const collect = async (newest: AsyncIterable<PlacedMessage>) => {
      const found: PlacedMessage[] = []
      for await (const { inbox, message } of newest) found.push({ inbox, message })
      return found
    }
    const found = await this.read(principal, read, collect, MAX_DELETED + 1)
    for (const batch of batchesOf(found.slice(0, MAX_DELETED))) {
      for (const _ of batch) await read.pace(0)
      await this.deleteAtOnce(principal, batch)
    }
    if (found.length > MAX_DELETED) {
      const detail = `${MAX_DELETED} messages were deleted, and there are more. Send the request again.`
      throw unavailable('busy', detail)
    }
  }

  /** The newest inboxes that have mail and no password. */
  private async list({ accountId, environment }: Principal): Promise<ActiveInbox[]> {
    const inboxes = await this.views.inboxes.listInboxes({
      ...{ accountId, environment, state: 'active', labels: [], now: this.instance.now() },
      ...{ order: 'desc', after: null, limit: MAX_INBOXES },
    })
    return inboxes
      .filter((inbox) => inbox.state === 'active')
      .filter(({ isProtected, messageCount }) => !isProtected && messageCount > 0)
  }

  /**
   * Merges the messages of inboxes by time. Rows of an inbox are read only when one of its messages may be the next, so
   * the newest messages of a thousand inboxes cost little.
   */
  private async *newest(
    inboxes: readonly ActiveInbox[],
    max: number,
    read: MailRead,
  ): AsyncGenerator<ReadableMessage> {
    const sources = new Set(inboxes.map(sourceOf))
    for (let taken = 0; taken < max && sources.size > 0;) {
      const source = newestOf(sources)
      const message = source.next.shift()
      if (message === undefined) {
        if (!(await this.fill(source, read))) sources.delete(source)
        continue
      }
      source.nextMs = (source.next[0] ?? message).receivedAt.getTime()
      if (source.key === null) throw new Error('a message was read without a key')
      taken += 1
      yield { inbox: source.inbox, key: source.key, message }
    }
  }

  /** Reads more messages of a source. False if there are none. */
  private async fill(source: Source, read: MailRead): Promise<boolean> {
    const { id: inboxId } = source.inbox
    await read.pace(0)
    const lookup = await this.views.vault.find(inboxId)
    // If the key is forgotten, the inbox has ended on the log, and its mail can't be read any more.
    if (lookup.state === 'forgotten') return false
    if (lookup.state === 'unknown') throw beingDeleted(inboxId)
    const range = { order: 'desc', from: 0, to: source.to, limit: CHUNK } as const
    const rows = await this.views.inboxes.listMessages({ inboxId, ...range })
    source.key = lookup.key
    source.to = rows.at(-1)?.offset ?? 0
    source.next = rows.map(({ message }) => message).filter((message) => message.state === 'present')
    source.nextMs = source.next[0]?.receivedAt.getTime() ?? source.nextMs
    return source.next.length > 0
  }

  private async findById(principal: Principal, id: string): Promise<PlacedMessage> {
    const [inboxId = '', ...messageId] = id.split('.')
    const { inbox } = await this.inboxes.open(principal, inboxId)
    if (inbox.isProtected) throw noInbox(inboxId)
    return { inbox, message: await this.reader.find(inbox, messageId.join('.')) }
  }

  private async deleteAtOnce(principal: Principal, found: readonly PlacedMessage[]): Promise<void> {
    const { keyId } = principal
    const now = this.instance.now()
    const deletions = found.map(async ({ inbox, message }) => {
      const ids = { inboxId: inbox.id, messageId: message.id }
      const { events } = decide({ inbox, message }, { type: 'DeleteMessage', ...ids, keyId, now })
      await this.recorder.record(events, principal)
      this.opened.forget(inbox.id)
    })
    await Promise.all(deletions)
  }
}

function sourceOf(inbox: ActiveInbox): Source {
  const nextMs = inbox.lastMessageAt?.getTime() ?? 0
  return { inbox, key: null, next: [], to: Number.MAX_SAFE_INTEGER, nextMs }
}

/** The source whose next message may be the newest; the first one of several. There must be one. */
function newestOf(sources: ReadonlySet<Source>): Source {
  let newest: Source | null = null
  for (const source of sources) if (newest === null || source.nextMs > newest.nextMs) newest = source
  if (newest === null) throw new Error('there is no source')
  return newest
}

function batchesOf<Item>(items: readonly Item[]): Item[][] {
  const starts = Array.from({ length: Math.ceil(items.length / BATCH) }, (_, index) => index * BATCH)
  return starts.map((at) => items.slice(at, at + BATCH))
}

/** Ignores the error of a message or an inbox that does not exist, or no longer. */
function nullIfMissing(error: unknown): null {
  if (error instanceof Problem && (error.status === 404 || error.status === 410)) return null
  throw error
}
