import { Injectable } from '@nestjs/common'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { Recorder, type Attribution, type DomainEvent } from '#libs/ports/event-log/cloud-event.js'
import { partitionName, type LogLayout, type Position } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries, InboxQueries } from '#libs/ports/read-model/queries.js'
import type { Signals } from '#libs/ports/signals/signals.js'

const VISIBLE_WITHIN_MS = 5_000

/** The views that the API reads, and whether they are complete. */
export class Views extends ConsistentViews {
  constructor(
    log: LogLayout,
    readonly inboxes: InboxQueries,
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

/** Records the events of commands. */
@Injectable()
export class VisibleRecorder {
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
    const positions = await Promise.all(events.map((event) => this.recorder.record(event, by)))
    const last = new Map<string, Position>()
    for (const position of positions) {
      const name = partitionName(position)
      if (position.offset >= (last.get(name)?.offset ?? 0)) last.set(name, position)
    }
    await Promise.all([...last.values()].map((position) => this.views.waitUntilVisible(position)))
    return positions
  }
}
