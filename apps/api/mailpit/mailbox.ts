import { Injectable } from '@nestjs/common'
import { decide } from '#libs/domain/inbox/decide.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import type { Principal } from '../access/principal.js'
import type { MailRead } from '../http/budgets.js'
import { noResource, notFound, Problem, unavailable } from '../http/problems.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { Inboxes } from '../inboxes/inboxes.service.js'
import { Instance } from '../instance.js'
import { EnvironmentMail, type ReadableMessage } from '../messages/environment-mail.js'
import type { PlacedMessage } from '../messages/message-content.js'
import { MessageReader } from '../messages/message-reader.js'
import { OpenedMail } from '../messages/opened-mail.js'

/** The newest messages of an environment. Mailpit stores 500 by default. */
export const MAX_MESSAGES = 1_000
const MAX_DELETED = 10_000
/** Messages that are deleted at once. */
const BATCH = 50

/** All inboxes of an environment as one mailbox, without those that have a password. */
@Injectable()
export class Mailbox {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
    private readonly mail: EnvironmentMail,
    private readonly reader: MessageReader,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    private readonly opened: OpenedMail,
  ) {}

  /**
   * Reads the newest messages, newest first, from views that are complete. `total` is their number, with those of inboxes
   * that have just expired. Throws ViewsCatchingUpError, and the errors of `read` and `work`.
   */
  async read<Result>(
    principal: Principal,
    read: MailRead,
    work: (newest: AsyncIterable<ReadableMessage>, total: number) => Promise<Result>,
    max = MAX_MESSAGES,
  ): Promise<Result> {
    return this.views.readComplete('inbox-events', async () => {
      const to = await this.views.endOffsets()
      const range = { order: 'desc', from: to.map(() => 0), to } as const
      const total = await this.mail.count(principal, range, max)
      return work(firstOf(this.mail.messages(principal, range, {}, read), max), total)
    })
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
    for (const batch of chunksOf([...ids], BATCH)) {
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
    const found: PlacedMessage[] = []
    const collect = async (newest: AsyncIterable<PlacedMessage>) => {
      for await (const { inbox, message } of newest) found.push({ inbox, message })
    }
    await this.read(principal, read, collect, MAX_DELETED + 1)
    for (const batch of chunksOf(found.slice(0, MAX_DELETED), BATCH)) {
      for (const _ of batch) await read.pace(0)
      await this.deleteAtOnce(principal, batch)
    }
    if (found.length > MAX_DELETED) {
      const detail = `${MAX_DELETED} messages were deleted, and there are more. Send the request again.`
      throw unavailable('busy', detail)
    }
  }

  private async findById(principal: Principal, id: string): Promise<PlacedMessage> {
    const [inboxId = '', ...messageId] = id.split('.')
    const { inbox } = await this.inboxes.open(principal, inboxId)
    if (inbox.isProtected) throw noResource('inbox', inboxId)
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

/** The first messages that can be read. */
async function* firstOf(
  all: AsyncIterable<{ found: ReadableMessage | null }>,
  max: number,
): AsyncGenerator<ReadableMessage> {
  let taken = 0
  for await (const { found } of all) {
    if (found === null) continue
    if (taken === max) return
    taken += 1
    yield found
  }
}

/** Ignores the error of a message or an inbox that does not exist, or no longer. */
function nullIfMissing(error: unknown): null {
  if (error instanceof Problem && (error.status === 404 || error.status === 410)) return null
  throw error
}
