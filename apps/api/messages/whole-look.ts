import { Injectable } from '@nestjs/common'
import type { InboxId } from '#libs/typeid/typeid.js'
import type { Principal } from '../access/authenticator.js'
import { Views } from '../http/views.js'
import { Inboxes, type OpenInbox } from '../inboxes/inboxes.service.js'

/** A look at an inbox's mail that can be believed to show all there is. */
@Injectable()
export class WholeLook {
  constructor(
    private readonly views: Views,
    private readonly inboxes: Inboxes,
  ) {}

  /** Judges first whether this caller may look; throws what `openContent` throws, and what `again` does. */
  async first<Found>(
    principal: Principal,
    inboxId: string,
    look: (open: OpenInbox) => Promise<Found>,
  ): Promise<Found> {
    const { id } = (await this.inboxes.openContent(principal, inboxId)).inbox
    return this.again(principal, id, look)
  }

  /**
   * What a look finds where the views were whole all along and the inbox is open. Throws the 410 of its end, and
   * catching-up.
   */
  async again<Found>(
    principal: Principal,
    inboxId: InboxId,
    look: (open: OpenInbox) => Promise<Found>,
  ): Promise<Found> {
    await this.views.mustKnow(inboxId)
    // Where its messages end counts as it stands in views that are whole.
    const found = await look(await this.inboxes.open(principal, inboxId))
    // Meanwhile its end may have come, or its views may have been lost: neither is an empty list.
    await this.views.mustKnow(inboxId)
    await this.inboxes.open(principal, inboxId)
    return found
  }
}
