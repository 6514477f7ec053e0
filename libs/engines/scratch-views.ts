import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AccountEvent } from '#libs/domain/account/events.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
import { partitionName, type PartitionRange } from '#libs/ports/event-log/event-log.js'
import {
  accountSliceBefore,
  inboxRowsBefore,
  projectAccountEvent,
  projectInboxEvents,
} from '#libs/ports/read-model/projections.js'
import type { Change } from '#libs/ports/read-model/view-store.js'
import type { LoggedEvent } from '#libs/ports/read-model/views.js'
import { chunksOf } from '#libs/runtime/chunks.js'

/** The exit code after a signal. */
const INTERRUPTED = 130
/** How many events of inboxes are projected in one step. */
export const EVENTS_AT_ONCE = 200
/** Signals that end a process, and that leave the folder behind if nobody listens. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export const REBUILT_TOPICS = ['account-events', 'inbox-events'] as const
export type RebuiltTopic = (typeof REBUILT_TOPICS)[number]
type Part = { topic: RebuiltTopic; partition: number }

/** The views of accounts and inboxes in a temporary folder, without content of mail. Disposing removes them. */
export class ScratchViews implements AsyncDisposable {
  private readonly positions = new Map<string, number>()
  private readonly environments = new Map<AccountId, Set<string>>()

  private constructor(
    readonly model: LmdbReadModel,
    private readonly resources: AsyncDisposableStack,
  ) {}

  /** `partitions`: of inbox-events. */
  static async open(partitions: number): Promise<ScratchViews> {
    await using opened = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    opened.defer(() => rm(folder, { recursive: true, force: true }))
    const end = (signal: NodeJS.Signals) => {
      rmSync(folder, { recursive: true, force: true })
      // Another listener ends the process in its own way.
      if (process.listenerCount(signal) === 1) process.exit(INTERRUPTED)
    }
    for (const signal of SIGNALS) process.on(signal, end)
    opened.defer(() => SIGNALS.forEach((signal) => process.off(signal, end)))
    const model = await openLmdbReadModel(join(folder, 'views.mdb'), partitions)
    opened.defer(() => model.close())
    return new ScratchViews(model, opened.move())
  }

  /** Must be called before the events of a partition are projected. */
  async begin(range: PartitionRange): Promise<void> {
    await this.model.store.begin('scratch', range)
    this.positions.set(partitionName(range), range.first)
  }

  /** Those of an account's inboxes and webhooks, in any state. */
  environmentsOf(accountId: AccountId): ReadonlySet<string> {
    return this.environments.get(accountId) ?? new Set()
  }

  hasBegun(part: Part): boolean {
    return this.positions.has(partitionName(part))
  }

  /** The offset of the next record of a partition. */
  positionOf(part: Part): number {
    const position = this.positions.get(partitionName(part))
    if (position === undefined) throw new Error(`${partitionName(part)} was not begun`)
    return position
  }

  /** Projects the events of a partition's next records, up to the offset `to`. */
  async projectInboxes(
    partition: number,
    events: readonly LoggedEvent<InboxEvent>[],
    to: number,
  ): Promise<void> {
    const part = { topic: 'inbox-events', partition } as const
    for (const some of chunksOf(events, EVENTS_AT_ONCE)) {
      const { changes } = projectInboxEvents(await inboxRowsBefore(this.model.store, some), some)
      await this.advance(part, (some.at(-1)?.offset ?? 0) + 1, changes)
    }
    for (const { event } of events) this.noteEnvironment(event)
    await this.advance(part, to, [])
  }

  async projectAccounts(events: readonly LoggedEvent<AccountEvent>[], to: number): Promise<void> {
    const part = { topic: 'account-events', partition: 0 } as const
    for (const logged of events) {
      const before = await accountSliceBefore(this.model.store, logged.event)
      await this.advance(part, logged.offset + 1, projectAccountEvent(before, logged))
      this.noteEnvironment(logged.event)
    }
    await this.advance(part, to, [])
  }

  private noteEnvironment(event: InboxEvent | AccountEvent): void {
    if (!('accountId' in event && 'environment' in event)) return
    const known = this.environments.get(event.accountId)
    if (known === undefined) this.environments.set(event.accountId, new Set([event.environment]))
    else known.add(event.environment)
  }

  private async advance(part: Part, to: number, changes: readonly Change[]): Promise<void> {
    const from = this.positionOf(part)
    if (to === from) return
    await this.model.store.apply({ ...part, from, to, changes, contents: [] })
    this.positions.set(partitionName(part), to)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.resources.disposeAsync()
  }
}

/** An event without the mail in it, which may be large and is not projected here. */
export function withoutMail(event: InboxEvent): InboxEvent {
  return event.type === 'MessageReceived' ? { ...event, sealed: new Uint8Array(0) } : event
}
