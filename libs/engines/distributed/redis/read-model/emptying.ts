import type { Partition } from '#libs/ports/event-log/event-log.js'
import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { dropMessages } from './changes.js'
import type { Contents } from './contents.js'
import { idsIn } from './lists.js'
import type { ViewKeys } from './keys.js'
import { reach } from './reach.js'
import { EMPTY } from './scripts.js'
import { StepWrites } from './step-writes.js'

const INBOXES_AT_ONCE = 200
const WEBHOOKS_AT_ONCE = 100

/**
 * Removes what belongs to single inboxes of a partition whose slot is gone, a little at a time. Killed midway, the
 * slot is still gone and the next to begin removes the rest; several at once share the work. Resolves with false if
 * the slot has come back meanwhile: another was through first, and nothing that it built since has been touched.
 */
export async function emptyInboxes(
  client: RedisClient,
  keys: ViewKeys,
  contents: Contents,
  place: Partition,
): Promise<boolean> {
  const slot = keys.slot(place)
  const inboxes = keys.inboxes(place.partition)
  for await (const ids of idsIn<InboxId>(client, inboxes, INBOXES_AT_ONCE)) {
    const writes = new StepWrites()
    const sizes = await reach(() => Promise.all(ids.map((inboxId) => client.hlen(keys.messages(inboxId)))))
    for (const inboxId of ids.filter((_, index) => sizes[index] !== 0)) {
      for await (const messages of contents.messagesOf(inboxId)) {
        const ofContent = new StepWrites()
        for (const message of messages) {
          ofContent.add('UNLINK', keys.body(message))
          ofContent.add('UNLINK', keys.raw(message))
        }
        if (messages.length > 0 && !(await write(ofContent))) return false
      }
    }
    for (const inboxId of ids) {
      dropMessages(writes, keys, inboxId)
      writes.add('UNLINK', keys.history(inboxId))
      writes.add('HDEL', inboxes, inboxId)
    }
    if (ids.length > 0 && !(await write(writes))) return false
  }
  return true

  function write(some: StepWrites): Promise<boolean> {
    return empty(client, slot, some)
  }
}

/** The same of what belongs to single webhooks. */
export async function emptyWebhooks(client: RedisClient, keys: ViewKeys, place: Partition): Promise<boolean> {
  const known = keys.webhookHealth(place.partition)
  for await (const ids of idsIn<WebhookId>(client, known, WEBHOOKS_AT_ONCE)) {
    const writes = new StepWrites()
    for (const webhookId of ids) {
      for (const key of keys.everyKeyOf(webhookId)) writes.add('UNLINK', key)
      writes.add('HDEL', known, webhookId)
    }
    if (ids.length > 0 && !(await empty(client, keys.slot(place), writes))) return false
  }
  return true
}

async function empty(client: RedisClient, slot: string, writes: StepWrites): Promise<boolean> {
  const { keys, args } = writes.forScript([slot])
  return (await reach(() => EMPTY.run(client, keys, args))) === 'emptied'
}
