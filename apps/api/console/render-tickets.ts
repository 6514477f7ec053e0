import { randomUUID } from 'node:crypto'
import Type, { type Static } from 'typebox'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { DerivedKeys } from '#libs/ports/key-vault/master-key.js'
import type { RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import type { Throttle } from '../access/request-limits.js'
import { SignedTokens } from '../access/signed-tokens.js'
import { notFound, type Problem, unavailable } from '../http/problems.js'

const VALID_SECONDS = 60
/** A window starts with the first use, so it ends after the ticket has expired. */
const ONE_USE: RatePolicy = { name: 'render-ticket', quota: 1, windowSeconds: VALID_SECONDS }

const Ticket = Type.Object({
  id: Type.String(),
  accountId: Type.Unsafe<AccountId>(Type.String()),
  environment: Type.String(),
  inboxId: Type.String(),
  messageId: Type.String(),
  /** The key, the inbox token or the session that it was issued to, with which it ends. */
  holderId: Type.String(),
  isRemoteAllowed: Type.Boolean(),
})

export type TicketContent = Omit<Static<typeof Ticket>, 'id'>

/**
 * Tickets to show one message once, within 60 seconds. A frame of the console loads a message with one, because it can't
 * send a key. Every instance accepts the tickets of every other one.
 */
export class RenderTickets {
  private readonly tokens

  constructor(
    keys: DerivedKeys,
    private readonly throttle: Throttle,
    private readonly now: () => Date,
  ) {
    this.tokens = new SignedTokens(keys, 'show a message', Ticket)
  }

  issue(content: TicketContent): { ticket: string; expiresAt: Date } {
    const expiresAt = new Date(this.now().getTime() + VALID_SECONDS * 1_000)
    return { ticket: this.tokens.sign({ id: randomUUID(), ...content }, expiresAt), expiresAt }
  }

  /**
   * Throws not-found if the ticket is not valid, has expired or was used, and read-model-unavailable if it can't be known
   * whether it was used.
   */
  async use(ticket: string): Promise<TicketContent> {
    const valid = this.tokens.verify(ticket, this.now())
    if (valid === null) throw unusable()
    const use = await this.throttle.count((limits) => limits.consume(valid.id, [ONE_USE]))
    if (use === null) throw unavailable('read-model-unavailable', "The link can't be checked at the moment.")
    if (!use.isAllowed) throw unusable()
    return valid
  }
}

function unusable(): Problem {
  return notFound('This link was used before or has expired. Open the message again.')
}
