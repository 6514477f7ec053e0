import type { Inbox } from '#libs/inbox/inbox.js'
import type { RemoteHost } from './connection-limits.js'
import type { ReceptionContext, ReceptionLimits } from './mail-reception.js'
import type { Refusal } from './replies.js'
import type { SessionBoundsOptions } from './session-bounds.js'
import type { SessionGuesses } from './unknown-recipients.js'

export interface SessionLimits extends ReceptionLimits {
  maxRecipients: number
  commandTimeoutMs: number
  /** In place of the one above, for who has delivered nothing yet, while few connections are left. */
  crowdedTimeoutMs: number
  handshakeTimeoutMs: number
  bounds: SessionBoundsOptions
  requiresTls: boolean
}

/** What every connection of an edge shares. */
export interface ConnectionContext extends ReceptionContext, SessionLimits {
  /** Null where mail may come. Never rejects. */
  refusalOfMail: () => Promise<Refusal | null>
  /** The inbox that a mailbox is, or why it takes no mail. Never rejects. */
  resolve: (mailbox: string) => Promise<Inbox | Refusal>
}

/** Whom a connection is from. */
export interface Peer {
  host: RemoteHost
  guesses: SessionGuesses
}
