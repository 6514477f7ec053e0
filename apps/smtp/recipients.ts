import type { EventLog } from '#libs/event-log/event-log.js'
import { addressReached, type Address } from '#libs/inbox/address.js'
import { asOf, type Inbox } from '#libs/inbox/inbox.js'
import { isAnyCatchingUp } from '#libs/read-model/backlog.js'
import type { InboxQueries } from '#libs/read-model/queries.js'
import type { BacklogWatch } from './backlog-watch.js'
import type { MailUsage } from './mail-usage.js'
import { Refusal, REFUSALS } from './replies.js'

export interface RecipientsOptions {
  log: Pick<EventLog, 'partitionCount'>
  inboxes: Pick<InboxQueries, 'inboxIdAt' | 'inbox' | 'progress'>
  backlog: BacklogWatch
  mailDomain: string
  maxBacklog: number
  usage: Pick<MailUsage, 'refused'>
  now: () => Date
  onError: (error: unknown) => void
}

/** Says from the views whether mail is taken, and for whom. */
export class Recipients {
  constructor(private readonly options: RecipientsOptions) {}

  /** Null where mail may come, whoever it is for. */
  async refusalOfMail(): Promise<Refusal | null> {
    const { backlog, maxBacklog } = this.options
    return this.orUnavailable(async () => {
      const { records } = backlog.recent() ?? (await backlog.measure())
      return records > maxBacklog ? REFUSALS.behind : null
    })
  }

  /** The inbox that a RCPT TO reaches, or why it takes no mail. */
  async resolve(recipient: string): Promise<Inbox | Refusal> {
    const address = addressReached(recipient, this.options.mailDomain)
    if (address === null) return REFUSALS.unknownRecipient
    return this.orUnavailable(() => this.look(address))
  }

  private async look(address: Address): Promise<Inbox | Refusal> {
    const found = (await this.inboxAt(address)) ?? (await this.lookAgain(address))
    if (found === null) return REFUSALS.unknownRecipient
    if (found instanceof Refusal) return found
    const refusal = refusalOf(found, this.options.now())
    if (refusal !== null) this.options.usage.refused(found, refusal)
    return refusal ?? found
  }

  /** While they catch up, what the views don't know may yet exist; lost ones may have come back since the first look. */
  private async lookAgain(address: Address): Promise<Inbox | Refusal | null> {
    const { log, inboxes } = this.options
    return (await isAnyCatchingUp(log, inboxes, 'inbox-events')) ? REFUSALS.catchingUp : this.inboxAt(address)
  }

  private async inboxAt(address: Address): Promise<Inbox | null> {
    const { inboxes } = this.options
    const id = await inboxes.inboxIdAt(address)
    const row = id === null ? null : await inboxes.inbox(id)
    return row?.inbox ?? null
  }

  private async orUnavailable<Result>(look: () => Promise<Result>): Promise<Result | Refusal> {
    try {
      return await look()
    } catch (error) {
      this.options.onError(error)
      return REFUSALS.readModelUnavailable
    }
  }
}

/** Why an inbox takes no mail at a moment; null where it does. */
export function refusalOf(inbox: Inbox, now: Date): Refusal | null {
  const current = asOf(inbox, now)
  if (current.state !== 'active') return REFUSALS.endedRecipient
  return current.messageCount >= current.maxMessages ? REFUSALS.inboxFull : null
}
