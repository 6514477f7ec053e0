import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { answersOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { MessageKey } from '#libs/ports/read-model/projection-store.js'
import type { MessageContent } from '#libs/ports/read-model/views.js'
import { idsIn } from './lists.js'
import type { ViewKeys } from './keys.js'
import { reach, reachBulk, runsOf } from './reach.js'

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

  /** Every message of an inbox, deleted ones too, run by run; one may come twice. */
  async *messagesOf(inboxId: InboxId): AsyncGenerator<MessageKey[]> {
    for await (const ids of idsIn<MessageId>(this.client, this.keys.messages(inboxId), MAX_KEYS)) {
      yield ids.map((messageId) => ({ inboxId, messageId }))
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
