import { LRUCache } from 'lru-cache'
import Type from 'typebox'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import { Count, Time } from '#libs/runtime/resource.js'
import type { DomainOwner, RecipientDomains } from './recipient-domains.js'

/*
 * The recipients that were refused lately, of each account. They are in memory only: SMTP processes send them with a
 * signal to all processes of the API, which list them.
 */

/** A refused recipient, as JSON. */
export const RefusedMail = Type.Object(
  {
    time: Time('When the recipient was last refused.'),
    recipient: Type.String({ description: 'The address of RCPT TO, as the client sent it.' }),
    sender: Type.String({ description: 'The address of MAIL FROM; empty for a bounce.' }),
    code: Type.Integer({
      description: 'The code of the SMTP reply. 400 to 499: the client may try again.',
      minimum: 400,
      maximum: 599,
    }),
    reason: Type.String({
      description: 'The text of the reply, which begins with the enhanced status code (RFC 3463).',
    }),
    count: Count(
      'How often this recipient was refused to this sender for this reason, since it was first listed.',
    ),
  },
  {
    $id: 'RefusedMail',
    description: 'A recipient whose mail was refused.',
    examples: [
      {
        time: '2026-11-21T09:30:00.000Z',
        recipient: 'jane@staging.example.com',
        sender: 'no-reply@app.example',
        code: 550,
        reason: '5.1.1 no inbox has this address',
        count: 2,
      },
    ],
  },
)

interface Refused extends Type.Static<typeof RefusedMail> {
  /** Null for the first account. */
  accountId: AccountId | null
  /** Null for all environments of the account. */
  environment: string | null
}

const FIRST_ACCOUNT = { accountId: null, environment: null }
const CHANNEL = 'refused-mail'
const SEND_EVERY_MS = 1_000
/** What an SMTP process sends at once. */
const MAX_SENT = { ofAccount: 50, ofAll: 1_000 }
/** What a process of the API keeps. An entry has at most 1 KiB of text. */
const MAX_LISTED = { ofAccount: 100, ofAll: 20_000 }

/** The last refused recipients of each account, for a process of the API. */
export class RefusedMailList {
  /** Newest first. Above the maximum of all, the account without a refusal for the longest time is dropped. */
  private readonly byAccount = new LRUCache<AccountId, readonly Refused[]>({
    maxSize: MAX_LISTED.ofAll,
    sizeCalculation: (list) => list.length,
  })

  /** Resolves with a function that ends it, once it receives what SMTP processes send. */
  listen(signals: Signals): Promise<() => void> {
    return signals.subscribe(CHANNEL, (message) => {
      if (message !== '') for (const refused of JSON.parse(message) as Refused[]) this.add(refused)
    })
  }

  /** Adds it, or its count to an earlier one that is the same. */
  private add(refused: Refused): void {
    const { accountId } = refused
    if (accountId === null) return
    const known = this.byAccount.get(accountId) ?? []
    const same = known.find((each) => isSame(each, refused))
    const newest = { ...refused, count: refused.count + (same?.count ?? 0) }
    const list = [newest, ...known.filter((each) => each !== same)]
    this.byAccount.set(accountId, list.slice(0, MAX_LISTED.ofAccount))
  }

  /** Newest first. */
  of({ accountId, environment }: MailOwner): Type.Static<typeof RefusedMail>[] {
    return (this.byAccount.get(accountId) ?? [])
      .filter((each) => each.environment === null || each.environment === environment)
      .map(({ accountId: _account, environment: _environment, ...mail }) => mail)
  }
}

function isSame(one: Refused, other: Refused): boolean {
  return (
    one.recipient === other.recipient &&
    one.sender === other.sender &&
    one.reason === other.reason &&
    one.code === other.code &&
    one.environment === other.environment
  )
}

/** Who a recipient belongs to: its inbox, or otherwise the owner of its domain. */
export type RecipientOwner = Inbox | DomainOwner

interface RefusedMailSenderOptions {
  signals: Pick<Signals, 'publish'>
  domains: Pick<RecipientDomains, 'firstAccount'>
  /** Whether the first account sees mail to addresses without an owner. */
  isEmbedded: boolean
  now: () => Date
  onError: (error: unknown) => void
}

/** Sends refused mail to the processes of the API, once a second. */
export class RefusedMailSender {
  private pending: Refused[] = []
  private readonly pendingOf = new Map<AccountId | null, number>()
  private timer: NodeJS.Timeout | undefined

  constructor(private readonly options: RefusedMailSenderOptions) {}

  /** Returns at once. Mail to protected inboxes is not sent, nor what exceeds the maximum within a second. */
  add(
    owner: RecipientOwner,
    { mailFrom: sender, rcptTo: recipient }: { mailFrom: string; rcptTo: string },
    { code, text: reason }: { code: number; text: string },
  ): void {
    const { isEmbedded, now } = this.options
    if (typeof owner === 'string' && owner !== 'first-account' && !isEmbedded) return
    if (typeof owner === 'object' && 'isProtected' in owner && owner.isProtected) return
    const { accountId, environment } = typeof owner === 'object' ? owner : FIRST_ACCOUNT
    const pendingOf = this.pendingOf.get(accountId) ?? 0
    if (pendingOf >= MAX_SENT.ofAccount || this.pending.length >= MAX_SENT.ofAll) return
    this.pendingOf.set(accountId, pendingOf + 1)
    const time = now().toISOString()
    this.pending.push({ accountId, environment, time, recipient, sender, code, reason, count: 1 })
    this.timer ??= setTimeout(() => void this.send(), SEND_EVERY_MS).unref()
  }

  /** Never rejects. */
  private async send(): Promise<void> {
    const { signals, domains, onError } = this.options
    const { pending } = this
    this.pending = []
    this.pendingOf.clear()
    this.timer = undefined
    try {
      const first = pending.some(({ accountId }) => accountId === null) ? await domains.firstAccount() : null
      const owned = pending.map((each) => ({ ...each, accountId: each.accountId ?? first }))
      signals.publish(CHANNEL, JSON.stringify(owned))
    } catch (error) {
      onError(error)
    }
  }

  close(): void {
    clearTimeout(this.timer)
  }
}
