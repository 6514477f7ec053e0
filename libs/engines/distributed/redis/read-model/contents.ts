import type { InboxId, MessageId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { answersOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { MessageKey } from '#libs/ports/read-model/projection-store.js'
import type { MessageContent } from '#libs/ports/read-model/views.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import { idsIn, reach, reachBulk, runsOf } from './lists.js'
import type { ViewKeys } from './keys.js'
import { dropMessages, StepWrites } from './changes.js'
import { EMPTY } from './scripts.js'

/** Content outlives its inbox by so much: clocks differ, and the end comes a little late. */
export const CONTENT_SLACK_MS = 3_600_000
/** Content in one round trip, of one that is larger just that. */
const MAX_BYTES = 1_048_576
const MAX_KEYS = 500

/** Bodies and sources, each a key that expires: no script has to carry them. */
export class Contents {
  constructor(
    private readonly client: RedisClient,
    private readonly bulk: RedisClient,
    private readonly keys: ViewKeys,
  ) {}

  /** Writing one twice is writing it once. What no step follows up expires unseen. */
  async write(contents: readonly MessageContent[]): Promise<void> {
    for (const run of this.runsByBytes(contents)) {
      const pipeline = this.bulk.pipeline()
      for (const content of run) {
        const untilMs = content.expiresAt.getTime() + CONTENT_SLACK_MS
        pipeline.set(this.keys.body(content), Buffer.from(content.body), 'PXAT', untilMs)
        pipeline.set(this.keys.raw(content), Buffer.from(content.raw), 'PXAT', untilMs)
      }
      await reachBulk(() => answersOf(pipeline))
    }
  }

  /** Keys of content that must be there now: what is about to expire may be gone already. */
  keysHeld(contents: readonly MessageContent[]): Set<string> {
    const soonMs = Date.now() + CONTENT_SLACK_MS / 2
    const held = contents.filter(({ expiresAt }) => expiresAt.getTime() + CONTENT_SLACK_MS > soonMs)
    return new Set(held.flatMap((content) => [this.keys.body(content), this.keys.raw(content)]))
  }

  /** Of messages of one partition. */
  async remove(messages: readonly MessageKey[]): Promise<void> {
    for (const run of runsOf(messages, MAX_KEYS)) {
      const pipeline = this.client.pipeline()
      for (const message of run) pipeline.unlink(this.keys.body(message), this.keys.raw(message))
      await reach(() => answersOf(pipeline))
    }
  }

  private *runsByBytes(contents: readonly MessageContent[]): Generator<MessageContent[]> {
    let run: MessageContent[] = []
    let bytes = 0
    for (const content of contents) {
      const more = content.body.length + content.raw.length
      if (run.length > 0 && bytes + more > MAX_BYTES) {
        yield run
        run = []
        bytes = 0
      }
      run.push(content)
      bytes += more
    }
    if (run.length > 0) yield run
  }
}

/** Every message of an inbox, deleted ones too, run by run; one may come twice. */
export async function* messagesOf(
  client: RedisClient,
  keys: ViewKeys,
  inboxId: InboxId,
): AsyncGenerator<MessageKey[]> {
  for await (const ids of idsIn<MessageId>(client, keys.messages(inboxId), MAX_KEYS)) {
    yield ids.map((messageId) => ({ inboxId, messageId }))
  }
}

const INBOXES_AT_ONCE = 200
const WEBHOOKS_AT_ONCE = 100

/**
 * Removes what belongs to single inboxes or webhooks of a partition whose slot is gone, a little at a time. If it is
 * killed midway, the slot is still gone, and the next process to begin removes the rest; several share the work.
 * Resolves with false if the slot has come back meanwhile: another process was through first, and nothing that it has
 * built since was touched.
 */
export async function emptyViews(
  client: RedisClient,
  keys: ViewKeys,
  partition: Partition,
): Promise<boolean> {
  for await (const writes of removals(client, keys, partition)) {
    const { keys: all, args } = writes.forScript([keys.slot(partition)])
    if ((await reach(() => EMPTY.run(client, all, args))) !== 'emptied') return false
  }
  return true
}

async function* removals(
  client: RedisClient,
  keys: ViewKeys,
  { topic, partition }: Partition,
): AsyncGenerator<StepWrites> {
  if (topic === 'inbox-events') {
    const inboxes = keys.inboxes(partition)
    for await (const ids of idsIn<InboxId>(client, inboxes, INBOXES_AT_ONCE)) {
      const sizes = await reach(() => Promise.all(ids.map((id) => client.hlen(keys.messages(id)))))
      for (const inboxId of ids.filter((_, index) => sizes[index] !== 0)) {
        for await (const messages of messagesOf(client, keys, inboxId)) {
          const writes = new StepWrites()
          for (const message of messages) {
            writes.add('UNLINK', keys.body(message))
            writes.add('UNLINK', keys.raw(message))
          }
          yield writes
        }
      }
      const writes = new StepWrites()
      for (const inboxId of ids) {
        dropMessages(writes, keys, inboxId)
        writes.add('UNLINK', keys.history(inboxId))
        writes.add('HDEL', inboxes, inboxId)
      }
      yield writes
    }
  }
  if (topic === 'webhook-events') {
    const known = keys.webhookHealth(partition)
    for await (const ids of idsIn<WebhookId>(client, known, WEBHOOKS_AT_ONCE)) {
      const writes = new StepWrites()
      for (const webhookId of ids) {
        for (const key of keys.everyKeyOf(webhookId)) writes.add('UNLINK', key)
        writes.add('HDEL', known, webhookId)
      }
      yield writes
    }
  }
}
