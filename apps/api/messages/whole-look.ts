import { Injectable } from '@nestjs/common'
import type { Principal } from '../access/authenticator.js'
import { Views } from '../http/views.js'
import { Inboxes, type OpenInbox } from '../inboxes/inboxes.service.js'

/** A look at an inbox's mail that can be believed to be all there is. */
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
  async at<Found>(
    principal: Principal,
    inboxId: string,
    look: (open: OpenInbox) => Promise<Found>,
  ): Promise<Found> {
    const { id } = (await this.inboxes.openContent(principal, inboxId)).inbox
    await this.views.mustKnow(id)
    // Where its messages end counts as it stands in views that are whole.
    const found = await look(await this.inboxes.openContent(principal, id))
    // Meanwhile its end may have come, or its views may have been lost: neither is an empty list.
    await this.views.mustKnow(id)
    await this.inboxes.openContent(principal, id)
    return found
  }
}
