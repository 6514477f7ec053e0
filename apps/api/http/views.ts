import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { partitionOf } from '#libs/ports/event-log/partitioner.js'
import type { EventLog, Position } from '#libs/ports/event-log/event-log.js'
import { isAnyCatchingUp, isInboxCatchingUp } from '#libs/ports/read-model/backlog.js'
import { isCatchingUp, type AccountQueries, type InboxQueries } from '#libs/ports/read-model/queries.js'
import { Watermark } from '#libs/ports/read-model/watermark.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { unavailable, type Problem } from './problems.js'

const VISIBLE_WITHIN_MS = 5_000

/** The read model as the API sees it: queries, and whether they can be believed yet. */
export class Views {
  private readonly watermark: Watermark

  constructor(
    private readonly log: Pick<EventLog, 'partitionCount'>,
    readonly inboxes: InboxQueries,
    readonly accounts: AccountQueries,
    readonly vault: Pick<KeyVault, 'create' | 'find'>,
    readonly signals: Signals,
  ) {
    this.watermark = new Watermark(inboxes, signals)
  }

  /** Throws catching-up where an account or a key may be missing, or may have changed since. */
  async mustKnowAccounts(): Promise<void> {
    if (isCatchingUp(await this.inboxes.progress({ topic: 'account-events', partition: 0 }))) {
      throw unavailable('catching-up', 'What accounts and keys there are can not be told yet.')
    }
  }

  /** As `known`, of accounts and their keys. */
  async knownOfAccounts<Row>(look: () => Promise<Row | null>): Promise<Row | null> {
    const found = await look()
    await this.mustKnowAccounts()
    return found ?? look()
  }

  /** Of inbox-events. */
  partitionOf(inboxId: InboxId): number {
    return partitionOf(inboxId, this.log.partitionCount('inbox-events'))
  }

  /** Whether what an inbox's partition does not show may yet exist. */
  isInboxCatchingUp(inboxId: InboxId): Promise<boolean> {
    return isInboxCatchingUp(this.log, this.inboxes, inboxId)
  }

  /** Throws catching-up where what an inbox's partition does not show may yet exist. */
  async mustKnow(inboxId: InboxId): Promise<void> {
    if (await this.isInboxCatchingUp(inboxId)) throw notKnownYet()
  }

  /**
   * What a look at an inbox's partition finds, null where it is certainly not there; throws catching-up where that
   * can't be told. Views that had been lost may come back between the look and that question: so it looks again.
   */
  async known<Row>(inboxId: InboxId, look: () => Promise<Row | null>): Promise<Row | null> {
    const found = await look()
    if (found !== null) return found
    await this.mustKnow(inboxId)
    return look()
  }

  /** Throws catching-up where any inbox may be missing. */
  async mustKnowAll(): Promise<void> {
    if (await isAnyCatchingUp(this.log, this.inboxes, 'inbox-events')) {
      throw unavailable('catching-up', 'The list of inboxes is not complete yet.')
    }
  }

  /** Resolves once a change of one's own can be read; throws catching-up where that takes too long. */
  async mustShow(position: Position): Promise<void> {
    if (await this.watermark.hasPassed(position, VISIBLE_WITHIN_MS)) return
    throw unavailable('catching-up', 'The change is stored, but can not be read yet: look for it again soon.')
  }
}

/** What an inbox holds can't be told while its partition's views catch up. */
export function notKnownYet(): Problem {
  return unavailable('catching-up', 'What this inbox holds can not be told yet.')
}
