import { Injectable } from '@nestjs/common'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { Recorder, type Attribution, type DomainEvent } from '#libs/ports/event-log/cloud-event.js'
import { partitionName, type LogLayout, type Position } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { activeInboxes } from '#libs/ports/read-model/active-inboxes.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries, InboxListQuery, MailQueries } from '#libs/ports/read-model/queries.js'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import { Budget } from '#libs/runtime/fair-share.js'

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

  /** The number of partitions of inbox-events. */
  partitionCount(): number {
    return this.log.partitionCount('inbox-events')
  }

  /** The partition of inbox-events that has the inbox. */
  partitionOf(inboxId: InboxId): number {
    return partitionOf(inboxId, this.partitionCount())
  }
}

/** The commands of an account that are recorded at once while other accounts send commands too. */
const CONCURRENT_COMMANDS = 4
/** The maximum wait of a command for earlier ones of its account. Then it is recorded, even if the log is slow. */
const TURN_WITHIN_MS = 1_000

/**
 * Records the events of commands. An account that sends many at once waits for its own, so that it does not delay those
 * of other accounts.
 */
@Injectable()
export class VisibleRecorder {
  private readonly turns = new Budget({
    total: Infinity,
    perOwner: CONCURRENT_COMMANDS,
    perOwnerAlone: Infinity,
    waitMs: TURN_WITHIN_MS,
  })

  constructor(
    private readonly recorder: Recorder,
    private readonly views: Views,
  ) {}

  /**
   * Resolves with their positions once the events are durable and the views show them. They are independent of each
   * other: if it rejects, any of them may be durable. Throws LogUnavailableError; and ViewsCatchingUpError if the events
   * are durable but not visible after five seconds.
   */
  async record(events: readonly DomainEvent[], by: Attribution): Promise<Position[]> {
    const release = await this.turns.take(by.accountId, 1).catch(() => null)
    try {
      const positions = await Promise.all(events.map((event) => this.recorder.record(event, by)))
      await this.waitUntilVisible(positions)
      return positions
    } finally {
      release?.()
    }
  }

  private async waitUntilVisible(positions: readonly Position[]): Promise<void> {
    const last = new Map<string, Position>()
    for (const position of positions) {
      const name = partitionName(position)
      if (position.offset >= (last.get(name)?.offset ?? 0)) last.set(name, position)
    }
    await Promise.all([...last.values()].map((position) => this.views.waitUntilVisible(position)))
  }
}
