import { Injectable } from '@nestjs/common'
import { isId, type InboxId } from '#libs/domain/ids/typeid.js'
import type { Principal } from '../access/authenticator.js'
import { notKnownYet, Views } from '../http/views.js'
import { Inboxes, type OpenInbox } from '../inboxes/inboxes.service.js'

export interface Look<Found> {
  /** What was found before of an inbox that has not changed since; null where it must be looked at. */
  recall?: (open: OpenInbox) => Found | null
  look: (open: OpenInbox) => Promise<Found>
}

/** A look at an inbox's mail that can be believed to show all there is. */
@Injectable()
export class WholeLook {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
  ) {}

  /**
   * What a look finds where the views were whole all along and the inbox is open. Throws what `openContent` throws, and
   * catching-up.
   */
  async first<Found>(principal: Principal, inboxId: string, look: Look<Found>): Promise<Found> {
    const isUnsure = isId('inb', inboxId) && (await this.views.isInboxCatchingUp(inboxId))
    const open = await this.inboxes.openContent(principal, inboxId)
    // Where its messages end counts as it stands in views that are whole.
    if (isUnsure) throw notKnownYet()
    return this.finish(principal, open, look)
  }

  /** The same for a caller who was let in by the first one. */
  async again<Found>(principal: Principal, inboxId: InboxId, look: Look<Found>): Promise<Found> {
    await this.views.mustKnow(inboxId)
    return this.finish(principal, await this.inboxes.open(principal, inboxId), look)
  }

  private async finish<Found>(
    principal: Principal,
    open: OpenInbox,
    { recall, look }: Look<Found>,
  ): Promise<Found> {
    const { id } = open.inbox
    const recalled = recall?.(open) ?? null
    const found = recalled ?? (await look(open))
    // Meanwhile its end may have come, or its views may have been lost: neither is an empty list.
    await this.views.mustKnow(id)
    if (recalled === null) await this.inboxes.open(principal, id)
    return found
  }
}
