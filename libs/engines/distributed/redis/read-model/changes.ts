import { Encoder } from 'cbor-x'
import { BULK_TIMEOUT_MS, answersOf, reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { ScriptArgument } from '#libs/engines/distributed/redis/client/script.js'
import {
  isOwnerEnd,
  type Change,
  type Contents,
  type IndexedEntry,
  type RowKey,
  type TableOf,
} from '#libs/ports/read-model/view-store.js'
import { TotalChanges, type TotalChange } from '#libs/ports/read-model/total-changes.js'
import { chunksByWeight, chunksOf } from '#libs/runtime/chunks.js'
import { groupPrefix, memberOf, type ViewKeys } from './keys.js'

/** Rows are stored as CBOR (RFC 8949), which has types for times and bytes. */
export const cbor = new Encoder({ useRecords: false, tagUint8Array: false })

/** `HADD` is not a command of Redis: the script adds a number to a field of a hash. */
type Command = 'HADD' | 'HSET' | 'HDEL' | 'ZADD' | 'ZREM' | 'UNLINK'

interface Write {
  command: Command
  key: string
  values: ScriptArgument[]
}

/** A full Redis rejects a script whose first write may need memory. With removals first, the end of an inbox succeeds. */
const REMOVALS: ReadonlySet<Command> = new Set(['HDEL', 'ZREM', 'UNLINK'])

/** Writes to one partition, for a script. Removals come first; otherwise the order of writes does not matter. */
export class StepWrites {
  private readonly removals: Write[] = []
  private readonly others: Write[] = []
  private readonly totals = new TotalChanges()

  constructor(
    private readonly keys: ViewKeys,
    private readonly partition: number,
  ) {}

  add(command: Command, key: string, ...values: ScriptArgument[]): void {
    const writes = REMOVALS.has(command) ? this.removals : this.others
    writes.push({ command, key, values })
  }

  /** Adds the writes of one change. Contents are not written by the script. */
  addChange(change: Change): void {
    const { keys, partition } = this
    if (isOwnerEnd(change)) {
      const { table, owner, indexes } = change
      this.add('UNLINK', keys.rows(table, partition, owner))
      for (const index of indexes) {
        if (index.isOwned) this.add('UNLINK', keys.entries(index, partition, [owner]))
      }
      return
    }
    const { table, key, row } = change
    const hash = keys.rows(table, partition, table.ownedBy === null ? null : key.owner)
    if (row === 'remove') this.add('HDEL', hash, key.key)
    else if (row !== 'keep') this.add('HSET', hash, key.key, cbor.encode(row.put))
    for (const entry of change.remove) this.removeEntry(entry)
    for (const entry of change.put) this.putEntry(entry)
  }

  removeEntry(indexed: IndexedEntry): void {
    const { index, entry } = indexed
    if (index.kind !== 'totals') {
      this.add('ZREM', this.keys.entries(index, this.partition, entry.group), memberOf(index, entry))
    }
    if (index.isTotalled) this.totals.add(indexed, -1)
  }

  private putEntry(indexed: IndexedEntry): void {
    const { keys, partition } = this
    const { index, entry } = indexed
    const score = index.kind === 'queue' ? entry.dueAtMs : 0
    if (index.kind !== 'totals') {
      this.add('ZADD', keys.entries(index, partition, entry.group), score, memberOf(index, entry))
    }
    const [owner] = entry.group
    if (index.kind === 'queue' && index.isOwned && owner !== undefined) {
      // Only if the owner has no score, or a higher one.
      this.add('ZADD', keys.owners(index, partition), 'LT', score, owner)
    }
    if (index.isTotalled) this.totals.add(indexed, 1)
  }

  private totalWrites({ index, group, count, sum }: TotalChange): Write[] {
    const key = this.keys.totals(index, this.partition)
    // The script of `totals` writes the names of these fields too.
    const field = `${groupPrefix(index, group.slice(0, -1))}${group.at(-1) ?? ''}`
    return Object.entries({ count, sum })
      .filter(([, change]) => change !== 0)
      .map(([name, change]) => ({ command: 'HADD', key, values: [`${field} ${name}`, change] }))
  }

  /** Returns `ownKeys` followed by the keys of the writes, and the arguments, which refer to keys by their index. */
  forScript(ownKeys: readonly string[]): { keys: string[]; args: ScriptArgument[] } {
    const indexes = new Map(ownKeys.map((key, index) => [key, index + 1]))
    const args: ScriptArgument[] = []
    const totals = this.totals.all().flatMap((change) => this.totalWrites(change))
    for (const { command, key, values } of [...this.removals, ...this.others, ...totals]) {
      const index = indexes.get(key) ?? indexes.size + 1
      indexes.set(key, index)
      args.push(values.length + 2, command, index, ...values)
    }
    return { keys: [...indexes.keys()], args }
  }
}

/** Executes StepWrites. Each write is the number of values that follow, the command, the key's index, other arguments. */
export const WRITE = `
local function add(key, field, number)
  local sum = tonumber(redis.call('HGET', key, field) or 0) + tonumber(number)
  if sum == 0 then return redis.call('HDEL', key, field) end
  redis.call('HSET', key, field, string.format('%.0f', sum))
end

local function write(at)
  while ARGV[at] do
    local stop = at + tonumber(ARGV[at])
    local key = KEYS[tonumber(ARGV[at + 2])]
    if ARGV[at + 1] == 'HADD' then
      add(key, ARGV[at + 3], ARGV[at + 4])
    else
      redis.call(ARGV[at + 1], key, unpack(ARGV, at + 3, stop))
    end
    at = stop + 1
  end
end
`

/*
 * Contents: each is a key that expires, and is not written by the script of the step.
 */

/** Contents expire this long after the latest end of their inbox, because clocks differ and an inbox ends a little late. */
export const CONTENT_SLACK_MS = 3_600_000
/** Bytes of contents in one round trip. A larger value is sent alone. */
const MAX_BYTES = 1_048_576
const MAX_KEYS = 500

/** Idempotent. Contents that no step refers to are never read, and expire. */
export async function writeContents(
  bulk: RedisClient,
  keys: ViewKeys,
  contents: readonly Contents[],
): Promise<void> {
  for (const chunk of chunksByWeight(contents, MAX_BYTES, bytesIn)) {
    const pipeline = bulk.pipeline()
    for (const { table, key, parts, expiresAt } of chunk) {
      const untilMs = expiresAt.getTime() + CONTENT_SLACK_MS
      for (const [part, bytes] of Object.entries(parts)) {
        pipeline.set(keys.content(table, key, part), Buffer.from(bytes), 'PXAT', untilMs)
      }
    }
    await reach(() => answersOf(pipeline), BULK_TIMEOUT_MS)
  }
}

/** The keys of contents that must exist. Contents that are about to expire may be gone already. */
export function contentKeysHeld(keys: ViewKeys, contents: readonly Contents[]): string[] {
  const soonMs = Date.now() + CONTENT_SLACK_MS / 2
  const held = contents.filter(({ expiresAt }) => expiresAt.getTime() + CONTENT_SLACK_MS > soonMs)
  const named = held.flatMap(({ table, key }) => contentKeysOf(keys, table, key))
  return [...new Set(named)]
}

export function contentKeysOf(keys: ViewKeys, table: TableOf<unknown>, key: RowKey): string[] {
  return table.parts.map((part) => keys.content(table, key, part))
}

export async function removeContents(client: RedisClient, contentKeys: readonly string[]): Promise<void> {
  for (const chunk of chunksOf(contentKeys, MAX_KEYS)) {
    await reach(() => client.unlink(...chunk))
  }
}

function bytesIn({ parts }: Contents): number {
  return Object.values(parts).reduce((sum, part) => sum + part.length, 0)
}
