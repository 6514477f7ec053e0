import { Injectable } from '@nestjs/common'
import { isId, type InboxId } from '#libs/domain/ids/typeid.js'
import type { Principal } from '../access/authenticator.js'
import { Views } from '../http/views.js'
import { Inboxes, noInbox, type OpenInbox } from '../inboxes/inboxes.service.js'

export interface Read<Found> {
  /** What was found before in an inbox that has not changed since; null if it must be read. */
  recall?: (open: OpenInbox) => Found | null
  read: (open: OpenInbox) => Promise<Found>
}

/** Reads an inbox's mail such that a message that is missing from the answer does not exist. */
@Injectable()
export class ConsistentRead {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
  ) {}

  /** Throws what `Inboxes.openContent` throws, and ViewsCatchingUpError. */
  async first<Found>(principal: Principal, inboxId: string, read: Read<Found>): Promise<Found> {
    if (!isId('inb', inboxId)) throw noInbox(inboxId)
    await this.inboxes.openContent(principal, inboxId)
    return this.again(principal, inboxId, read)
  }

  /** The same without the inbox's password, for a caller who has shown it to `first`. */
  again<Found>(principal: Principal, inboxId: InboxId, { recall, read }: Read<Found>): Promise<Found> {
    return this.views.readComplete(inboxId, async () => {
      const open = await this.inboxes.open(principal, inboxId)
      const recalled = recall?.(open) ?? null
      if (recalled !== null) return recalled
      const found = await read(open)
      // If the inbox has ended meanwhile, its messages went with it.
      await this.inboxes.open(principal, inboxId)
      return found
    })
  }
}
