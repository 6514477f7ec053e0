import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { MessageCursor } from '../http/cursor.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import { PlaintextMemory } from './plaintext-memory.js'

/** A page of an inbox's messages as it is sent. */
export interface WrittenPage {
  /** A JSON array in UTF-8. */
  body: Buffer
  /** Where the client has read to: given back, it yields exactly what came after. */
  cursor: MessageCursor
  /** Where the list goes on; null if there is no more now. */
  next: MessageCursor | null
}

/** What this process has opened of inboxes and may show again, in memory alone. */
@Injectable()
export class OpenedMail implements OnApplicationShutdown {
  /** By the id of the message. */
  readonly messages: PlaintextMemory<OpenedMessage>
  /** By all that a page follows from. */
  readonly pages: PlaintextMemory<WrittenPage>
  /** The JSON of a message's event, written once for all streams. */
  readonly events: PlaintextMemory<string>

  constructor(mostBytes: number) {
    const quarter = Math.floor(mostBytes / 4)
    this.messages = new PlaintextMemory(2 * quarter)
    this.pages = new PlaintextMemory(quarter)
    this.events = new PlaintextMemory(quarter)
  }

  /** To be called where an inbox, or a message of it, is seen to be gone. */
  forget(inboxId: InboxId): void {
    this.messages.forget(inboxId)
    this.pages.forget(inboxId)
    this.events.forget(inboxId)
  }

  onApplicationShutdown(): void {
    this.messages.close()
    this.pages.close()
    this.events.close()
  }
}
