import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Account } from '#libs/domain/account/account.js'
import { isId, type AccountId } from '#libs/domain/ids/typeid.js'
import type { Engine } from '#libs/engines/engine.js'
import { openEngine } from '#libs/engines/open-engine.js'
import { decodeBatch } from '#libs/ports/event-log/batch-decoding.js'
import { accountEventCodec, inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { findRange, partitionName, type StoredRecord } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { accountState, allOf, type StateLine } from '#libs/ports/read-model/account-state.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import { isCatchingUp } from '#libs/ports/read-model/view-store.js'
import { loggedEvent } from '#libs/ports/read-model/views.js'
import type { Environment } from '#libs/runtime/config/setting.js'
import { readSettings } from '#libs/runtime/config/settings.js'
import { EXIT, Failure } from './failure.js'
import { REBUILT_TOPICS, ScratchViews, withoutMail, type RebuiltTopic } from './scratch-views.js'

export interface Verified {
  accounts: number
  /** How many things were compared: accounts, keys, members, domains, webhooks, inboxes and messages. */
  things: number
  /** The first ones. */
  differences: Difference[]
  difference_count: number
}

export interface Difference {
  account_id: string
  id: string
  /** `missing` and `surplus` in the views, or the fields that differ. */
  difference: string
}

const MAX_DIFFERENCES = 100
/** Views that change meanwhile are compared again. */
const MAX_ROUNDS = 5
const BETWEEN_ROUNDS_MS = 2_000

/**
 * Compares the views of accounts and inboxes with those that follow from the event log, up to the events that the views
 * have. Throws Failure if the views are not complete.
 */
export async function verifyViews(environment: Environment): Promise<Verified> {
  const settings = { ...readSettings(environment), countsUsage: false }
  if (settings.kafkaBrokers === null && !existsSync(settings.dataDir)) {
    throw new Failure(EXIT.usage, `${settings.dataDir} does not exist`)
  }
  const engine = await openEngine({
    ...{ settings, role: 'cli', now: () => new Date() },
    // What fails in the background fails here too, if it matters.
    onError: () => undefined,
  })
  try {
    await using scratch = await ScratchViews.open(engine.log.partitionCount('inbox-events'))
    return await compareUntilStable(engine, scratch)
  } finally {
    await engine.close()
  }
}

interface Comparison {
  accounts: number
  things: number
  /** By account and id, with what both sides have. */
  differing: Map<string, Difference & { sides: string }>
}

/** A difference counts if both sides are the same in two rounds: what changes meanwhile is behind on one side. */
async function compareUntilStable(engine: Engine, scratch: ScratchViews): Promise<Verified> {
  let before: Comparison['differing'] = new Map()
  for (let round = 1; ; round += 1) {
    await catchUp(engine, scratch)
    const { differing, ...counts } = await compare(engine, scratch)
    const stable = [...differing].filter(([name, { sides }]) => before.get(name)?.sides === sides)
    if (stable.length === differing.size || round === MAX_ROUNDS) {
      const found = stable.map(([, { sides: _sides, ...difference }]) => difference)
      return { ...counts, differences: found.slice(0, MAX_DIFFERENCES), difference_count: found.length }
    }
    before = differing
    await pause(BETWEEN_ROUNDS_MS)
  }
}

/** Projects the events that the views of the engine have. */
async function catchUp({ log, inboxes }: Engine, scratch: ScratchViews): Promise<void> {
  for (const topic of REBUILT_TOPICS) {
    for (const { partition } of (await log.topology(topic)).partitions) {
      const part = { topic, partition }
      const { logId, range } = await findRange(log, part)
      const progress = await inboxes.progress(part)
      if (progress === null || progress.logId !== logId || isCatchingUp(progress)) {
        throw new Failure(
          EXIT.unavailable,
          `the views of ${partitionName(part)} are not complete: run Mayfly until they are`,
        )
      }
      if (!scratch.hasBegun(part)) await scratch.begin(range)
      const end = progress.position
      for await (const records of log.read({ ...part, first: scratch.positionOf(part), end })) {
        await project(scratch, log.partitionCount(topic), { ...part, records })
      }
    }
  }
}

async function project(
  scratch: ScratchViews,
  partitions: number,
  part: { topic: RebuiltTopic; partition: number; records: readonly StoredRecord[] },
): Promise<void> {
  const next = (part.records.at(-1)?.offset ?? 0) + 1
  const batch = { ...part, from: scratch.positionOf(part), next }
  if (part.topic === 'account-events') {
    const { events } = decodeBatch(accountEventCodec, batch, partitions)
    const logged = events.map(({ offset, recorded }) => loggedEvent(offset, recorded))
    await scratch.projectAccounts(logged, next)
  } else {
    const { events } = decodeBatch(inboxEventCodec, batch, partitions)
    const logged = events.map(({ offset, recorded }) =>
      loggedEvent(offset, { ...recorded, event: withoutMail(recorded.event) }),
    )
    await scratch.projectInboxes(part.partition, logged, next)
  }
}

async function compare(engine: Engine, scratch: ScratchViews): Promise<Comparison> {
  const views = { accounts: engine.accounts, webhooks: engine.webhooks, queries: engine.inboxes }
  const accountIds = new Set([...(await accountsOf(views)), ...(await accountsOf(scratch.model))])
  const comparison: Comparison = { accounts: accountIds.size, things: 0, differing: new Map() }
  for (const accountId of accountIds) {
    const rebuilt = new Map<string, string>()
    for await (const line of accountState(scratch.model, accountId))
      rebuilt.set(line.id, JSON.stringify(line))
    comparison.things += rebuilt.size
    const add = (id: string, difference: string, sides: string) =>
      comparison.differing.set(`${accountId} ${id}`, { account_id: accountId, id, difference, sides })
    for await (const line of accountState(views, accountId)) {
      const { id } = line
      const [shown, wanted] = [JSON.stringify(line), rebuilt.get(id)]
      rebuilt.delete(id)
      if (wanted === undefined && (await isBeforeLog(engine, line))) continue
      if (wanted !== shown)
        add(id, wanted === undefined ? 'surplus' : fieldsThatDiffer(shown, wanted), `${shown} ${wanted}`)
    }
    for (const [id, wanted] of rebuilt) add(id, 'missing', wanted)
  }
  return comparison
}

/** Whether an inbox has events that the log no longer has. It has ended long ago, and can't be rebuilt. */
async function isBeforeLog({ log, inboxes }: Engine, { id }: StateLine): Promise<boolean> {
  if (!isId('inb', id)) return false
  const [first] = await inboxes.history({
    inboxId: id,
    order: 'asc',
    from: 0,
    to: Number.MAX_SAFE_INTEGER,
    limit: 1,
  })
  const partition = partitionOf(id, log.partitionCount('inbox-events'))
  const { range } = await findRange(log, { topic: 'inbox-events', partition })
  return first !== undefined && first.offset < range.first
}

function fieldsThatDiffer(shown: string, wanted: string): string {
  const [one, other] = [JSON.parse(shown) as StateLine, JSON.parse(wanted) as StateLine]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name])).join(', ')
}

async function accountsOf({ accounts }: Pick<ReadModel, 'accounts'>): Promise<AccountId[]> {
  const found: AccountId[] = []
  for await (const { id } of allOf<Account>((query) => accounts.listAccounts(query))) found.push(id)
  return found
}
