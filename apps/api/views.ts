import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries, MailQueries } from '#libs/ports/read-model/queries.js'
import { activeInboxes, type InboxListQuery } from '#libs/ports/read-model/inbox-lists.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import type { Signals } from '#libs/ports/signals/signals.js'

const VISIBLE_WITHIN_MS = 5_000
/** How many inboxes are listed at a time. With 1,000, V8 keeps them for so long that a verification takes 150 MiB more. */
const INBOXES_AT_ONCE = 100

/** The views that the API reads, and whether they are complete. */
export class Views extends ConsistentViews {
  constructor(
    log: LogLayout,
    readonly inboxes: MailQueries,
    readonly accounts: AccountQueries,
    readonly vault: Pick<KeyVault, 'create' | 'find'>,
    signals: Signals,
  ) {
    super(log, inboxes, signals, VISIBLE_WITHIN_MS)
  }

  /** Reads accounts and keys while their views are complete. Throws ViewsCatchingUpError. */
  readAccounts<Result>(read: (accounts: AccountQueries) => Promise<Result>): Promise<Result> {
    return this.readComplete('account-events', () => read(this.accounts))
  }

  /** The active inboxes of an environment that have all of these labels, in pages. Throws ViewsCatchingUpError. */
  activeInboxes(
    { accountId, environment }: MailOwner,
    labels: InboxListQuery['labels'],
    now: () => Date,
  ): AsyncGenerator<ActiveInbox[]> {
    return activeInboxes(
      (query) => this.readComplete('inbox-events', () => this.inboxes.listInboxes(query)),
      { accountId, environment, labels, after: null, pageSize: INBOXES_AT_ONCE, now },
    )
  }

  /** For each partition of inbox-events, the offset after the last event that the views show. */
  async endOffsets(): Promise<number[]> {
    const all = Array.from({ length: this.partitionCount() }, (_, partition) =>
      this.inboxes.progress({ topic: 'inbox-events', partition }),
    )
    return (await Promise.all(all)).map((progress) => progress?.position ?? 0)
  }

  partitionCount(): number {
    return this.log.partitionCount('inbox-events')
  }

  partitionOf(inboxId: InboxId): number {
    return partitionOf(inboxId, this.partitionCount())
  }
}
