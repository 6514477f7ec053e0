import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { ProjectionStore, Step } from '#libs/ports/read-model/projection-store.js'
import { ReadModelUnavailableError } from '#libs/ports/read-model/queries.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { beginPartition } from './begin-partition.js'
import { addChange, StepWrites, WRITE } from './changes.js'
import { contentKeysHeld, messagesOf, removeContents, writeContents } from './contents.js'
import { removeEnvironmentMessagesOf } from './environment-lists.js'
import type { ViewKeys } from './keys.js'
import type { Tables } from './rows.js'

const MAX_ADDRESSES_AT_ONCE = 500
const MAX_ENDED_AT_ONCE = 50
/** Attempts to apply a step if a node of a Cluster is replaced after the content was written, which is rare. */
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
        // The script checks this too. Checking first avoids writing the content of a step that is rejected.
        const position = await reach(() => client.hget(keys.progress(step), 'position'))
        if (position === null) return 'absent'
        if (position !== String(step.from)) return { position: Number(position) }
      }
      await removeEnded(step)
      await writeAddresses(step)
      const outcome = await applyWithContents(step)
      if (outcome === 'absent') return 'absent'
      if (outcome !== 'applied') return { position: Number(outcome) }
      const deleted = step.changes.flatMap((change) =>
        change.type === 'put-message' && change.row.message.state === 'deleted'
          ? [{ inboxId: change.inbox.id, messageId: change.row.message.id }]
          : [],
      )
      await removeContents(client, keys, deleted)
      return 'applied'
    },
  }

  /** Writes the content, then runs the script. Repeats both if the node that runs the script lacks content. */
  async function applyWithContents(step: Step): Promise<unknown> {
    const writes = new StepWrites()
    for (const change of step.changes) addChange(writes, keys, tables, change)
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      await writeContents(bulk, keys, step.contents)
      const contentKeys = contentKeysHeld(keys, step.contents)
      const { keys: all, args } = writes.forScript([keys.progress(step), ...contentKeys])
      const given = [step.from, step.to, contentKeys.length, ...args]
      const outcome = await reach(() => APPLY.run(client, all, given))
      if (outcome !== 'incomplete') return outcome
    }
    throw new ReadModelUnavailableError('Redis has lost the content of a step several times')
  }

  /**
   * Removes the contents of ended inboxes, and their messages from the list of the environment, before the step, which
   * removes the ids of their messages. They are removed in chunks, because there may be many. Until the step is applied,
   * the messages are shown without content, which can't be decrypted any more anyway.
   */
  async function removeEnded({ changes }: Step): Promise<void> {
    const ended = changes.flatMap((change) => (change.type === 'drop-messages' ? [change.inbox] : []))
    for (const inboxes of chunksOf(ended, MAX_ENDED_AT_ONCE)) {
      await Promise.all(
        inboxes.map(async (inbox) => {
          await removeEnvironmentMessagesOf(client, keys, inbox)
          for await (const messages of messagesOf(client, keys, inbox.id)) {
            await removeContents(client, keys, messages)
          }
        }),
      )
    }
  }

  /** An address is in another slot of a Cluster, so it is written before the step. It is valid once the inbox has it. */
  async function writeAddresses({ changes }: Step): Promise<void> {
    const created = changes.flatMap((change) =>
      change.type === 'put-inbox' && change.previous === null ? [change.row.inbox] : [],
    )
    for (const inboxes of chunksOf(created, MAX_ADDRESSES_AT_ONCE)) {
      await reach(() =>
        Promise.all(inboxes.map(({ id, address }) => client.set(keys.address(address), id, 'NX'))),
      )
    }
  }
}

/**
 * If the position is `from`, executes the writes and moves it to `to`. Returns `applied`; the position, if it is another one;
 * `absent`; or `incomplete`, if a key of content is missing, which may have been written to a node that was replaced.
 * Keys: progress, keys of content, keys of the writes. Arguments: from, to, number of content keys, the writes. Offsets are
 * compared as strings, because Lua's numbers lose digits.
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
