import { setTimeout as pause } from 'node:timers/promises'
import type { Account } from '#libs/domain/account/account.js'
import { MAIL_QUOTAS, quotaName, WHOLE_ACCOUNT } from '#libs/domain/account/quota.js'
import { isId, type AccountId, type InboxId } from '#libs/domain/ids/typeid.js'
import { openLogAndViews } from '#libs/engines/open-engine.js'
import { REBUILT_TOPICS, ScratchViews, withoutMail, type RebuiltTopic } from '#libs/engines/scratch-views.js'
import { decodeBatch } from '#libs/ports/event-log/batch-decoding.js'
import { accountEventCodec, inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import {
  findRange,
  partitionName,
  type EventLog,
  type StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { accountState, allFrom, allOf, type AccountViews } from '#libs/ports/read-model/account-state.js'
import { isCatchingUp } from '#libs/ports/read-model/view-store.js'
import { loggedEvent } from '#libs/ports/read-model/views.js'
import type { Environment } from '#libs/runtime/config/setting.js'
import { readSettings } from '#libs/runtime/config/settings.js'
import { messageOf } from '#libs/runtime/errors.js'
import { EXIT, Failure } from './failure.js'

export interface Verified {
  accounts: number
  /** How many rows of the views were compared. */
  rows: number
  /** How many rows were different, but changed each time they were compared. */
  unstable: number
  /** The first ones. */
  differences: Difference[]
  difference_count: number
}

interface Difference {
  account_id: string
  /** `quotas` is what the account and its environments use of the quotas of mail. */
  id: string
  /** What is wrong in the views: the row is `missing` or `not on the log`, or the names of its wrong properties. */
  difference: string
}

const MAX_DIFFERENCES = 100
const MAX_ROUNDS = 5
const BETWEEN_ROUNDS_MS = 2_000

/**
 * Compares the views of accounts and inboxes with those that follow from the event log, up to the events that the views
 * have. Throws Failure if the views are not complete.
 */
export async function verifyViews(environment: Environment, warn: (text: string) => void): Promise<Verified> {
  const settings = { ...readSettings(environment), countsUsage: false }
  const onError = (error: unknown, during: string) => warn(`${during} failed: ${messageOf(error)}`)
  await using opened = await openLogAndViews({ settings, role: 'cli', now: () => new Date(), onError })
  await using scratch = await ScratchViews.open(opened.log.partitionCount('inbox-events'))
  return await new Comparison(opened.log, opened.model, scratch).run()
}

type Compared = Difference & { sides: string }

class Comparison {
  private readonly now = new Date()
  private rows = 0
  /** Of each partition, the first offset that the log still has. */
  private readonly firstOffsets = new Map<string, number>()

  constructor(
    private readonly log: EventLog,
    private readonly views: AccountViews,
    private readonly scratch: ScratchViews,
  ) {}

  /**
   * A difference counts if both sides are the same in two rounds. On a running system one side is a little behind, so rows
   * that change are different for a moment.
   */
  async run(): Promise<Verified> {
    await this.catchUp()
    const accounts = new Set([...(await accountsOf(this.views)), ...(await accountsOf(this.scratch.model))])
    let found = await this.compare(accounts)
    const { rows } = this
    let stable: Compared[] = []
    for (let round = 1; stable.length < found.size && round < MAX_ROUNDS; round += 1) {
      await pause(BETWEEN_ROUNDS_MS)
      await this.catchUp()
      const before = found
      found = await this.compare(new Set([...before.values()].map(({ account_id: id }) => id as AccountId)))
      stable = [...found].flatMap(([name, each]) => (before.get(name)?.sides === each.sides ? [each] : []))
    }
    const differences = stable.slice(0, MAX_DIFFERENCES).map(({ sides: _sides, ...each }) => each)
    const unstable = found.size - stable.length
    return { accounts: accounts.size, rows, unstable, differences, difference_count: stable.length }
  }

  /** Projects the events that the views have. */
  private async catchUp(): Promise<void> {
    const { log, scratch } = this
    for (const topic of REBUILT_TOPICS) {
      for (const { partition } of (await log.topology(topic)).partitions) {
        const part = { topic, partition }
        const { logId, range } = await findRange(log, part)
        const progress = await this.views.queries.progress(part)
        if (progress === null || progress.logId !== logId || isCatchingUp(progress)) {
          const name = partitionName(part)
          throw new Failure(
            EXIT.unavailable,
            `the views of ${name} are not complete: run Mayfly until they are`,
          )
        }
        this.firstOffsets.set(partitionName(part), range.first)
        if (!scratch.hasBegun(part)) await scratch.begin(range)
        const end = progress.position
        for await (const records of log.read({ ...part, first: scratch.positionOf(part), end })) {
          await this.project({ ...part, records })
        }
      }
    }
  }

  private async project(part: {
    topic: RebuiltTopic
    partition: number
    records: readonly StoredRecord[]
  }): Promise<void> {
    const { scratch } = this
    const { topic, partition, records } = part
    const next = (records.at(-1)?.offset ?? 0) + 1
    const batch = { ...part, from: scratch.positionOf(part), next }
    const partitions = this.log.partitionCount(topic)
    // Records that can't be decoded have no effect on the views.
    if (topic === 'account-events') {
      const decoded = decodeBatch(accountEventCodec, batch, partitions)
      requireWhole(decoded, next)
      const events = decoded.events.map(({ offset, recorded }) => loggedEvent(offset, recorded))
      await scratch.projectAccounts(events, next)
    } else {
      const decoded = decodeBatch(inboxEventCodec, batch, partitions)
      requireWhole(decoded, next)
      const events = decoded.events.map(({ offset, recorded }) =>
        loggedEvent(offset, { ...recorded, event: withoutMail(recorded.event) }),
      )
      await scratch.projectInboxes(partition, events, next)
    }
  }

  /** What is different, by account and id. */
  private async compare(accounts: ReadonlySet<AccountId>): Promise<Map<string, Compared>> {
    const found = new Map<string, Compared>()
    for (const accountId of accounts) {
      const environments = this.scratch.environmentsOf(accountId)
      const add = (id: string, difference: string, sides: string) =>
        found.set(`${accountId} ${id}`, { account_id: accountId, id, difference, sides })
      const rebuilt = new Map<string, string>()
      for await (const { id, row } of this.rowsOf(this.scratch.model, accountId, environments)) {
        rebuilt.set(id, textOf(row))
      }
      this.rows += rebuilt.size
      for await (const { id, row } of this.rowsOf(this.views, accountId, environments)) {
        const [shown, expected] = [textOf(row), rebuilt.get(id)]
        rebuilt.delete(id)
        if (shown === expected) continue
        if (expected !== undefined) add(id, namesThatDiffer(shown, expected), `${shown} ${expected}`)
        else if (!(await this.isOlderThanLog(id))) add(id, 'not on the log', shown)
      }
      for (const [id, expected] of rebuilt) add(id, 'missing', expected)
    }
    return found
  }

  /** The rows of an account, its activity, what it uses of quotas, and the histories of its inboxes that the log has. */
  private async *rowsOf(
    views: AccountViews,
    accountId: AccountId,
    environments: ReadonlySet<string>,
  ): AsyncGenerator<{ id: string; row: object }> {
    const activity = allFrom(0, (range) => views.accounts.activity(accountId, range))
    for await (const row of activity) yield { id: row.id, row }
    const scopes = [WHOLE_ACCOUNT, ...[...environments].map((environment) => ({ environment, keyId: null }))]
    const quotas = MAIL_QUOTAS.flatMap((quota) => scopes.map((scope) => ({ quota, scope })))
    const used = await views.queries.usedQuotas(accountId, quotas, this.now)
    yield {
      id: 'quotas',
      row: Object.fromEntries(quotas.map((each, index) => [quotaName(each), used[index]])),
    }
    for await (const item of accountState(views, accountId, environments)) {
      yield item
      const { id } = item
      if (!isId('inb', id)) continue
      const from = this.firstOffsetOf(id)
      const history = allFrom(from, (range) => views.queries.history({ inboxId: id, ...range }))
      for await (const row of history) yield { id: row.id, row }
    }
  }

  /** Whether an inbox has events that the log no longer has. It has ended long ago. */
  private async isOlderThanLog(id: string): Promise<boolean> {
    if (!isId('inb', id)) return false
    const range = { order: 'asc', from: 0, to: this.firstOffsetOf(id), limit: 1 } as const
    return (await this.views.queries.history({ inboxId: id, ...range })).length > 0
  }

  /** Of the partition of an inbox. */
  private firstOffsetOf(id: InboxId): number {
    const partition = partitionOf(id, this.log.partitionCount('inbox-events'))
    return this.firstOffsets.get(partitionName({ topic: 'inbox-events', partition })) ?? 0
  }
}

/** Throws Failure if a batch has an event of a newer version. */
function requireWhole({ next }: { next: number }, end: number): void {
  if (next < end) {
    throw new Failure(
      EXIT.failed,
      'a newer version of Mayfly wrote to the event log: compare with that version',
    )
  }
}

/** A row as JSON, with bytes in base64. */
function textOf(row: object): string {
  return JSON.stringify(row, function (this: Readonly<Record<string, unknown>>, name, value: unknown) {
    const bytes = this[name]
    return bytes instanceof Uint8Array ? Buffer.from(bytes).toString('base64') : value
  })
}

function namesThatDiffer(...texts: [string, string]): string {
  const [one, other] = texts.map((text) => JSON.parse(text) as Record<string, unknown>) as [
    Record<string, unknown>,
    Record<string, unknown>,
  ]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name])).join(', ')
}

async function accountsOf({ accounts }: AccountViews): Promise<AccountId[]> {
  const found: AccountId[] = []
  for await (const { id } of allOf<Account>((query) => accounts.listAccounts(query))) found.push(id)
  return found
}
