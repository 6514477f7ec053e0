import { Encoder } from 'cbor-x'
import type { ScriptArgument } from '#libs/engines/distributed/redis/client/script.js'
import { isOwnerEnd, type Change, type IndexedEntry } from '#libs/ports/read-model/view-store.js'
import { groupPrefix, memberOf, type ViewKeys } from './keys.js'

/** Rows are stored as CBOR (RFC 8949), which has types for times and bytes. */
export const cbor = new Encoder({ useRecords: false, tagUint8Array: false })

/** Adds the writes of one change. Contents are not written by the script. */
export function addChange(writes: StepWrites, keys: ViewKeys, partition: number, change: Change): void {
  if (isOwnerEnd(change)) {
    const { table, owner, indexes } = change
    writes.add('UNLINK', keys.rows(table, partition, owner))
    for (const index of indexes) {
      if (index.isOwned) writes.add('UNLINK', keys.entries(index, partition, [owner]))
    }
    return
  }
  const { table, key, row } = change
  const hash = keys.rows(table, partition, table.ownedBy === null ? null : key.owner)
  if (row === 'remove') writes.add('HDEL', hash, key.key)
  else if (row !== 'keep') writes.add('HSET', hash, key.key, cbor.encode(row.put))
  for (const entry of change.remove) removeEntry(writes, keys, partition, entry)
  for (const entry of change.put) putEntry(writes, keys, partition, entry)
}

function putEntry(writes: StepWrites, keys: ViewKeys, partition: number, { index, entry }: IndexedEntry) {
  const score = index.kind === 'queue' ? entry.dueAtMs : 0
  writes.add('ZADD', keys.entries(index, partition, entry.group), score, memberOf(index, entry))
  const [owner] = entry.group
  if (index.kind === 'queue' && index.isOwned && owner !== undefined) {
    writes.add('ZADD LT', keys.owners(index, partition), score, owner)
  }
  if (index.isTotalled) addToTotals(writes, keys, partition, { index, entry }, 1)
}

export function removeEntry(
  writes: StepWrites,
  keys: ViewKeys,
  partition: number,
  { index, entry }: IndexedEntry,
): void {
  writes.add('ZREM', keys.entries(index, partition, entry.group), memberOf(index, entry))
  if (index.isTotalled) addToTotals(writes, keys, partition, { index, entry }, -1)
}

function addToTotals(
  writes: StepWrites,
  keys: ViewKeys,
  partition: number,
  { index, entry: { group, sort } }: IndexedEntry,
  sign: 1 | -1,
): void {
  const fields = totalFields(groupPrefix(index, group.slice(0, -1)), group.at(-1) ?? '')
  writes.increase(keys.totals(index, partition), fields.count, sign)
  writes.increase(keys.totals(index, partition), fields.sum, sign * Number(sort))
}

/** The fields of the totals of a group. The script of `totals` writes them too. */
function totalFields(prefix: string, last: string): { count: string; sum: string } {
  return { count: `${prefix}${last} count`, sum: `${prefix}${last} sum` }
}

/** Values in one command. A Lua call has a limit of some thousand arguments. */
const MAX_VALUES = 1_000

/**
 * `HADD` is not a command of Redis: the script adds numbers to fields of a hash. `ZADD LT` sets the score of a member that
 * has none or a higher one.
 */
type Command = 'HADD' | 'HSET' | 'HDEL' | 'ZADD' | 'ZADD LT' | 'ZREM' | 'UNLINK'

/** A full Redis rejects a script whose first write may need memory. With removals first, the end of an inbox succeeds. */
const REMOVALS: ReadonlySet<Command> = new Set(['HDEL', 'ZREM', 'UNLINK'])

/**
 * Writes to keys of one hash slot for a script, grouped by command and key. Removals come first; otherwise the order of
 * writes does not matter.
 */
export class StepWrites {
  private readonly byTarget = new Map<string, { command: Command; key: string; values: ScriptArgument[] }>()
  /** By key and field, what is added to the number. */
  private readonly increases = new Map<string, Map<string, number>>()

  add(command: Command, key: string, ...values: ScriptArgument[]): void {
    const target = `${command} ${key}`
    const group = this.byTarget.get(target)
    if (group === undefined) this.byTarget.set(target, { command, key, values })
    else group.values.push(...values)
  }

  increase(key: string, field: string, by: number): void {
    const fields = this.increases.get(key) ?? new Map<string, number>()
    this.increases.set(key, fields)
    fields.set(field, (fields.get(field) ?? 0) + by)
  }

  /** Returns `ownKeys` followed by the keys of the writes, and the arguments, which refer to keys by their index. */
  forScript(ownKeys: readonly string[]): { keys: string[]; args: ScriptArgument[] } {
    const indexes = new Map(ownKeys.map((key, index) => [key, index + 1]))
    const args: ScriptArgument[] = []
    const increases = [...this.increases].map(([key, fields]) => {
      const values = [...fields].filter(([, by]) => by !== 0).flat()
      return { command: 'HADD' as const, key, values }
    })
    const writes = [...this.byTarget.values(), ...increases.filter(({ values }) => values.length > 0)]
    const isRemoval = ({ command }: (typeof writes)[number]) => REMOVALS.has(command)
    const inOrder = [...writes.filter(isRemoval), ...writes.filter((each) => !isRemoval(each))]
    for (const { command, key, values } of inOrder) {
      const index = indexes.get(key) ?? indexes.size + 1
      indexes.set(key, index)
      for (let at = 0; at === 0 || at < values.length; at += MAX_VALUES) {
        const some = values.slice(at, at + MAX_VALUES)
        const [name, ...options] = command.split(' ')
        args.push(some.length + options.length + 2, name ?? command, index, ...options)
        for (const value of some) args.push(value)
      }
    }
    return { keys: [...indexes.keys()], args }
  }
}

/** Executes StepWrites. Each write is the number of values that follow, the command, the key's index, other arguments. */
export const WRITE = `
local function add(key, at, stop)
  for field = at, stop, 2 do
    local sum = tonumber(redis.call('HGET', key, ARGV[field]) or 0) + tonumber(ARGV[field + 1])
    if sum == 0 then
      redis.call('HDEL', key, ARGV[field])
    else
      redis.call('HSET', key, ARGV[field], string.format('%.0f', sum))
    end
  end
end

local function write(at)
  local last = #ARGV
  while at <= last do
    local stop = at + tonumber(ARGV[at])
    local key = KEYS[tonumber(ARGV[at + 2])]
    if ARGV[at + 1] == 'HADD' then
      add(key, at + 3, stop)
    else
      redis.call(ARGV[at + 1], key, unpack(ARGV, at + 3, stop))
    end
    at = stop + 1
  end
end
`
