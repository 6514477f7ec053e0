import type { PartitionRange } from '#libs/event-log/event-log.js'
import { partitionOf } from '#libs/event-log/partitioner.js'
import { answerOf } from '#libs/redis-client/answer.js'
import type { RedisClient } from '#libs/redis-client/redis-client.js'
import { Script } from '#libs/redis-client/script.js'
import type { InboxId } from '#libs/typeid/typeid.js'
import { KeyVaultUnavailableError } from '../key-vault.js'
import type { KeyEntry, KeyStep, KeyView } from '../key-view.js'
import type { WrappedKey } from '../master-key.js'

/*
 * The view of inbox keys in Redis. Relies on Redis 7: a script's writes are seen together or not at all.
 *
 * | key                | type | holds                                                                     |
 * | ------------------ | ---- | ------------------------------------------------------------------------- |
 * | {k<n>}:keys        | hash | inbox id → `forgotten`, or the master key's id, a colon, the key in base64 |
 * | {k<n>}:slot        | hash | log, position                                                             |
 */

export interface RedisKeyViewOptions {
  client: RedisClient
  prefix: string
  /** Of inbox-keys. */
  partitions: number
}

const FORGOTTEN = 'forgotten'

const ADD = new Script(`
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HGET', KEYS[1], ARGV[1])
`)

const FORGET = new Script(`
for index = 1, #ARGV do redis.call('HSET', KEYS[1], ARGV[index], '${FORGOTTEN}') end
`)

const BEGIN = new Script(`
local slot = redis.call('HMGET', KEYS[2], 'log', 'position')
local position = tonumber(slot[2] or '')
if slot[1] == ARGV[1] and position then
  if position <= tonumber(ARGV[3]) then return position end
  if slot[2] ~= ARGV[4] then return {'ahead', slot[2]} end
end
redis.call('UNLINK', KEYS[1])
redis.call('HSET', KEYS[2], 'log', ARGV[1], 'position', ARGV[2])
return tonumber(ARGV[2])
`)

/** Pairs of inbox id and entry follow the two offsets. A partition that was never begun stands nowhere. */
const APPLY = new Script(`
if redis.call('HGET', KEYS[2], 'position') ~= ARGV[1] then return 0 end
for index = 3, #ARGV, 2 do
  local write = ARGV[index + 1] == '${FORGOTTEN}' and 'HSET' or 'HSETNX'
  redis.call(write, KEYS[1], ARGV[index], ARGV[index + 1])
end
redis.call('HSET', KEYS[2], 'position', ARGV[2])
return 1
`)

export class RedisKeyView implements KeyView {
  constructor(private readonly options: RedisKeyViewOptions) {}

  async find(inboxId: InboxId): Promise<KeyEntry | null> {
    const [keys] = this.keysOf(this.partitionOf(inboxId))
    const text = await this.ask(() => this.options.client.hget(keys, inboxId))
    return text === null ? null : readEntry(text)
  }

  async add(inboxId: InboxId, key: WrappedKey): Promise<KeyEntry> {
    const [keys] = this.keysOf(this.partitionOf(inboxId))
    return readEntry(String(await this.run(ADD, [keys], [inboxId, writeEntry(key)])))
  }

  async forget(inboxIds: readonly InboxId[]): Promise<void> {
    const byPartition = Map.groupBy(inboxIds, (inboxId) => this.partitionOf(inboxId))
    await Promise.all(
      [...byPartition].map(([partition, ids]) => {
        const [keys] = this.keysOf(partition)
        return this.run(FORGET, [keys], ids)
      }),
    )
  }

  async begin(
    logId: string,
    { partition, first, end }: PartitionRange,
    aheadAt?: number,
  ): Promise<number | { aheadAt: number }> {
    const standsAt = await this.run(BEGIN, this.keysOf(partition), [logId, first, end, aheadAt ?? ''])
    return Array.isArray(standsAt) ? { aheadAt: Number(standsAt[1]) } : Number(standsAt)
  }

  async apply({ partition, from, to, entries }: KeyStep): Promise<boolean> {
    const pairs = entries.flatMap(([inboxId, entry]) => [inboxId, writeEntry(entry)])
    return (await this.run(APPLY, this.keysOf(partition), [from, to, ...pairs])) === 1
  }

  async anyWrapped(): Promise<WrappedKey | null> {
    for (let partition = 0; partition < this.options.partitions; partition += 1) {
      const [keys] = this.keysOf(partition)
      const sample = await this.ask(() => this.options.client.hrandfield(keys, SAMPLE, 'WITHVALUES'))
      for (const text of [sample].flat(2)) {
        const entry = typeof text === 'string' && text.includes(':') ? readEntry(text) : FORGOTTEN
        if (entry !== FORGOTTEN) return entry
      }
    }
    return null
  }

  private partitionOf(inboxId: InboxId): number {
    return partitionOf(inboxId, this.options.partitions)
  }

  private keysOf(partition: number): [keys: string, slot: string] {
    const tag = `${this.options.prefix}{k${partition}}`
    return [`${tag}:keys`, `${tag}:slot`]
  }

  private run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.ask(() => script.run(this.options.client, keys, args))
  }

  private ask<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    return answerOf(
      ask,
      (cause) => new KeyVaultUnavailableError('the view of inbox keys is out of reach', { cause }),
    )
  }
}

const SAMPLE = 20

function writeEntry(entry: KeyEntry): string {
  if (entry === FORGOTTEN) return FORGOTTEN
  return `${entry.masterKeyId}:${Buffer.from(entry.wrapped).toString('base64')}`
}

function readEntry(text: string): KeyEntry {
  if (text === FORGOTTEN) return FORGOTTEN
  const colon = text.indexOf(':')
  return { masterKeyId: text.slice(0, colon), wrapped: Buffer.from(text.slice(colon + 1), 'base64') }
}
