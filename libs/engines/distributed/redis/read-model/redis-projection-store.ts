import { reach, runsOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { ProjectionStore, Step } from '#libs/ports/read-model/projection-store.js'
import { ReadModelUnavailableError } from '#libs/ports/read-model/queries.js'
import { beginPartition } from './begin-partition.js'
import { addChange, StepWrites, WRITE } from './changes.js'
import { contentKeysHeld, messagesOf, removeContents, writeContents } from './contents.js'
import type { ViewKeys } from './keys.js'
import type { Tables } from './rows.js'

const ADDRESSES_AT_ONCE = 500
const ENDED_AT_ONCE = 50
/** A node of a Cluster may be replaced between content and step, but hardly more than once. */
const MAX_ATTEMPTS = 4

export function projectionStore(
  client: RedisClient,
  bulk: RedisClient,
  keys: ViewKeys,
  tables: Tables,
): ProjectionStore {
  return {
    begin: (logId, range, aheadAt) => beginPartition(client, keys, logId, range, aheadAt),

    inboxes: (ids) => tables.inboxes.getAll(ids),
    messages: (rowKeys) => tables.messages.getAll(rowKeys),
    deliveries: (rowKeys) => tables.deliveries.getAll(rowKeys),
    replays: (rowKeys) => tables.replays.getAll(rowKeys),
    webhookHealth: (ids) => tables.webhookHealth.getAll(ids),

    async accountSlice({ accountId, keyId, webhookId }) {
      const [account, key, webhook] = await Promise.all([
        tables.accounts.get(accountId),
        keyId === null ? null : tables.apiKeys.get(keyId),
        webhookId === null ? null : tables.webhooks.get(webhookId),
      ])
      return { account, key, webhook }
    },

    async apply(step) {
      if (step.contents.length > 0 || step.changes.length > 0) {
        // The script checks this too; asking first keeps a refused step from writing content that nobody removes.
        const position = await reach(() => client.hget(keys.slot(step), 'position'))
        if (position === null) return 'absent'
        if (position !== String(step.from)) return { standsAt: Number(position) }
      }
      await removeEnded(step)
      await writeAddresses(step)
      const outcome = await applyWhole(step)
      if (outcome === 'absent') return 'absent'
      if (outcome !== 'applied') return { standsAt: Number(outcome) }
      const deleted = step.changes.flatMap((change) =>
        change.type === 'put-message' && change.row.message.state === 'deleted'
          ? [{ inboxId: change.inboxId, messageId: change.row.message.id }]
          : [],
      )
      await removeContents(client, keys, deleted)
      return 'applied'
    },
  }

  /** The script's answer, once the node that applies the step has all content. */
  async function applyWhole(step: Step): Promise<unknown> {
    const writes = new StepWrites()
    for (const change of step.changes) addChange(writes, keys, tables, change)
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      await writeContents(bulk, keys, step.contents)
      const contentKeys = contentKeysHeld(keys, step.contents)
      const { keys: all, args } = writes.forScript([keys.slot(step), ...contentKeys])
      const given = [step.from, step.to, contentKeys.length, ...args]
      const outcome = await reach(() => APPLY.run(client, all, given))
      if (outcome !== 'incomplete') return outcome
    }
    throw new ReadModelUnavailableError('Redis has lost the content of a step several times')
  }

  /**
   * The contents of ended inboxes go run by run before the step, which takes away the ids that lead to them: there may
   * be any number of them. Until it is through, the messages are without content, as they are without a key.
   */
  async function removeEnded({ changes }: Step): Promise<void> {
    const ended = changes.flatMap((change) => (change.type === 'drop-messages' ? [change.inboxId] : []))
    for (const run of runsOf(ended, ENDED_AT_ONCE)) {
      await Promise.all(
        run.map(async (inboxId) => {
          for await (const messages of messagesOf(client, keys, inboxId)) {
            await removeContents(client, keys, messages)
          }
        }),
      )
    }
  }

  /** Before the step, since they lie elsewhere. They hold once the inbox is there and has that address. */
  async function writeAddresses({ changes }: Step): Promise<void> {
    const made = changes.flatMap((change) =>
      change.type === 'put-inbox' && change.previous === null ? [change.row.inbox] : [],
    )
    for (const run of runsOf(made, ADDRESSES_AT_ONCE)) {
      await reach(() =>
        Promise.all(run.map(({ id, address }) => client.set(keys.address(address), id, 'NX'))),
      )
    }
  }
}

/**
 * If the slot (the first key) is at `from`: writes, and moves it to `to`. Answers `applied`, the position if it is
 * another, `absent`, or `incomplete` if one of the next so many keys, of content, is missing: it may have gone to a
 * node that was replaced since. Arguments: from, to, how many, the writes. Positions are compared as text, because
 * Lua's numbers lose digits.
 */
const APPLY = new Script(`${WRITE}
local position = redis.call('HGET', KEYS[1], 'position')
if not position then return 'absent' end
if position ~= ARGV[1] then return position end
for at = 2, 1 + tonumber(ARGV[3]) do
  if redis.call('EXISTS', KEYS[at]) == 0 then return 'incomplete' end
end
write(4)
redis.call('HSET', KEYS[1], 'position', ARGV[2])
return 'applied'
`)
