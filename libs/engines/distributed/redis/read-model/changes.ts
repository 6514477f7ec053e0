import { REMOVED } from '#libs/domain/webhook/webhook.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Change } from '#libs/ports/read-model/views.js'
import { countPeriod, indexChanges, type IndexEntry } from '#libs/ports/read-model/index-entries.js'
import { scopeOf } from '#libs/ports/read-model/queries.js'
import type { ScriptArgument } from '#libs/engines/distributed/redis/client/script.js'
import { labelCountMember, labelCountScope, totalFields } from './label-counts.js'
import { environmentEndingMember, environmentMessageMember } from './environment-lists.js'
import {
  labelScope,
  listScope,
  type ViewKeys,
  pendingReplayMember,
  keyListMember,
  webhookListMember,
  writeActiveKey,
} from './keys.js'
import { encodeHistoryEntry, type Tables } from './rows.js'

/** Adds the writes of one change: its row, then its index entries. Content is written before the step. */
export function addChange(writes: StepWrites, keys: ViewKeys, tables: Tables, change: Change): void {
  if (change.type === 'drop-messages') dropMessages(writes, keys, change.inbox.id)
  else writes.add(...rowWrite(keys, tables, change))
  const { remove, put } = indexChanges(change)
  for (const entry of remove) removeEntry(writes, keys, entry)
  for (const entry of put) putEntry(writes, keys, entry)
}

export function dropMessages(writes: StepWrites, keys: ViewKeys, inboxId: InboxId): void {
  writes.add('UNLINK', keys.messages(inboxId))
  writes.add('UNLINK', keys.order(inboxId))
}

type Write = [command: Command, key: string, ...values: ScriptArgument[]]

function rowWrite(keys: ViewKeys, tables: Tables, change: Exclude<Change, { type: 'drop-messages' }>): Write {
  switch (change.type) {
    case 'put-inbox':
      return tables.inboxes.put(change.row.inbox.id, change.row)
    case 'put-message':
      return tables.messages.put({ inboxId: change.inbox.id, messageId: change.row.message.id }, change.row)
    case 'put-history':
      return ['ZADD', keys.history(change.inbox.id), change.entry.offset, encodeHistoryEntry(change.entry)]
    case 'put-account':
      return tables.accounts.put(change.account.id, change.account)
    case 'put-key':
      return tables.apiKeys.put(change.key.id, change.key)
    case 'put-delivery': {
      const { id: deliveryId, webhookId } = change.row.delivery
      return tables.deliveries.put({ webhookId, deliveryId }, change.row)
    }
    case 'put-replay': {
      const { id: replayId, webhookId } = change.replay
      return tables.replays.put({ webhookId, replayId }, change.replay)
    }
    case 'put-webhook-health':
      return tables.webhookHealth.put(change.health.webhookId, change.health)
    case 'put-webhook':
      return tables.webhooks.put(change.webhook.id, change.webhook)
    case 'remove-webhook':
      return tables.webhooks.put(change.webhook.id, REMOVED)
  }
}

function putEntry(writes: StepWrites, keys: ViewKeys, entry: IndexEntry): void {
  const { key, field, value } = stored(keys, entry)
  if (isInHash(entry)) writes.add('HSET', key, field, value)
  // NX keeps an existing lease.
  else writes.add(entry.index === 'pending-replays' ? 'ZADD NX' : 'ZADD', key, value, field)
  if (entry.index === 'due-deliveries') {
    writes.add('ZADD LT', keys.dueWebhooks(keys.partitionOf(entry.webhookId)), value, entry.webhookId)
  }
  if (entry.index === 'label-counts') addToTotals(writes, keys, entry, 1)
}

function removeEntry(writes: StepWrites, keys: ViewKeys, entry: IndexEntry): void {
  const { key, field } = stored(keys, entry)
  writes.add(isInHash(entry) ? 'HDEL' : 'ZREM', key, field)
  if (entry.index === 'due-inboxes') {
    writes.add('ZREM', keys.leases(keys.partitionOf(entry.inboxId)), entry.inboxId)
  }
  if (entry.index === 'label-counts') addToTotals(writes, keys, entry, -1)
}

function addToTotals(
  writes: StepWrites,
  keys: ViewKeys,
  { inbox, name, value }: Extract<IndexEntry, { index: 'label-counts' }>,
  sign: 1 | -1,
): void {
  const key = keys.labelTotals(keys.partitionOf(inbox.id))
  const fields = totalFields(labelCountScope(inbox, name, value), countPeriod(inbox))
  writes.increase(key, fields.inboxes, sign)
  writes.increase(key, fields.received, sign * inbox.receivedCount)
}

function isInHash({ index }: IndexEntry): boolean {
  return index === 'addresses' || index === 'key-hashes'
}

/** A field and value of a hash, or a member and score of a sorted set. */
interface Stored {
  key: string
  field: string
  value: string | number
}

function stored(keys: ViewKeys, entry: IndexEntry): Stored {
  switch (entry.index) {
    case 'addresses':
      return at(keys.addresses(keys.partitionOf(entry.inboxId)), entry.address, entry.inboxId)
    case 'listing':
      return at(keys.listing(keys.partitionOf(entry.inbox.id)), listScope(entry.inbox) + entry.inbox.id)
    case 'labels': {
      const { inbox, name, value } = entry
      return at(keys.labels(keys.partitionOf(inbox.id)), labelScope(inbox, name, value) + inbox.id)
    }
    case 'label-counts': {
      const { inbox, name, value } = entry
      return at(keys.labelCounts(keys.partitionOf(inbox.id)), labelCountMember(inbox, name, value))
    }
    case 'due-inboxes':
      return at(keys.due(keys.partitionOf(entry.inboxId)), entry.inboxId, entry.expiresAt.getTime())
    case 'messages':
      return at(keys.order(entry.inboxId), entry.messageId, entry.offset)
    case 'environment-messages': {
      const { inbox, message } = entry
      const key = keys.environmentMessages(keys.partitionOf(message.inboxId))
      return at(key, environmentMessageMember(inbox, message))
    }
    case 'environment-endings': {
      const { inbox, offset } = entry
      return at(keys.environmentEndings(keys.partitionOf(inbox.id)), environmentEndingMember(inbox, offset))
    }
    case 'accounts':
      return at(keys.accountList, entry.accountId)
    case 'key-hashes':
      return at(keys.keyHashes, entry.secretHash, entry.keyId)
    case 'keys':
      return at(keys.keyList, keyListMember(entry.key.accountId, entry.key.id))
    case 'active-keys':
      return at(keys.activeKeys, writeActiveKey(entry.key))
    case 'webhooks':
      return at(keys.webhookList, webhookListMember(scopeOf(entry.webhook), entry.webhook.id))
    case 'active-webhooks':
      return at(keys.activeWebhooks, webhookListMember(scopeOf(entry.webhook), entry.webhook.id))
    case 'deliveries': {
      const { delivery, offset } = entry.row
      return at(keys.deliveryOrder(delivery.webhookId), delivery.id, offset)
    }
    case 'delivery-states': {
      const { delivery, offset } = entry.row
      return at(keys.deliveriesIn(delivery.webhookId, delivery.state), delivery.id, offset)
    }
    case 'due-deliveries':
      return at(keys.dueDeliveries(entry.webhookId), entry.deliveryId, entry.dueAt.getTime())
    case 'replays':
      return at(keys.replayList(entry.replay.webhookId), entry.replay.id)
    case 'pending-replays': {
      const { id: replayId, webhookId } = entry.replay
      return at(
        keys.pendingReplays(keys.partitionOf(webhookId)),
        pendingReplayMember({ webhookId, replayId }),
      )
    }
  }
}

function at(key: string, field: string, value: string | number = 0): Stored {
  return { key, field, value }
}

/** Values in one command. A Lua call has a limit of some thousand arguments. */
const MAX_VALUES = 1_000

/**
 * `HADD` is not a command of Redis: the script adds numbers to fields of a hash. `ZADD LT` sets the score of a member that
 * has none or a higher one, `ZADD NX` only of a member that has none.
 */
type Command = 'HADD' | 'HSET' | 'HDEL' | 'ZADD' | 'ZADD LT' | 'ZADD NX' | 'ZREM' | 'UNLINK'

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

  add(...[command, key, ...values]: Write): void {
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
