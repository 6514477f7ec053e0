import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Leave } from '#libs/runtime/fair-share/shared-slots.js'
import type { SmtpAuth } from './smtp-auth.js'
import type { RemoteHost } from './connection-limits.js'
import type { ReceptionContext, ReceptionLimits } from './mail-reception.js'
import type { Client, DISCARDED } from './recipients.js'
import type { Refusal } from './replies.js'
import type { SessionBoundsOptions } from './session-bounds.js'
import type { SessionGuesses } from './unknown-recipients.js'

export interface SessionLimits extends ReceptionLimits {
  maxRecipients: number
  commandTimeoutMs: number
  handshakeTimeoutMs: number
  bounds: SessionBoundsOptions
  requiresTls: boolean
  /** Whether STARTTLS is offered. */
  offersTls: boolean
}

/** What every connection of an edge shares. */
export interface ConnectionContext extends ReceptionContext, SessionLimits {
  auth: Pick<SmtpAuth, 'isOff' | 'offer' | 'senderKey'>
  /** Null if mail may come. Never rejects. */
  refusalOfMail: () => Promise<Refusal | null>
  /** The inbox that a recipient reaches, DISCARDED, or why it is refused. Never rejects. */
  resolve: (mailbox: string, client: Client) => Promise<Inbox | typeof DISCARDED | Refusal>
}

/** Who is at the other end of a connection. */
export interface Peer {
  host: RemoteHost
  /** Called once the connection is gone. */
  leave: Leave
  /** Whether TLS comes first, before the greeting. */
  isImplicitTls: boolean
  guesses: SessionGuesses
}
