import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import { BULK_TIMEOUT_MS, answersOf, reach, runsOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { MessageKey } from '#libs/ports/read-model/projection-store.js'
import type { MessageContent } from '#libs/ports/read-model/views.js'
import type { ViewKeys } from './keys.js'
import { idsIn } from './lists.js'

// Bodies and sources, each a key that expires: no script has to carry them.

/** Content outlives its inbox by so much: clocks differ, and the end comes a little late. */
export const CONTENT_SLACK_MS = 3_600_000
/** Content in one round trip, of one that is larger just that. */
const MAX_BYTES = 1_048_576
const MAX_KEYS = 500

/** Writing one twice is writing it once. What no step follows up expires unseen. */
export async function writeContents(
  bulk: RedisClient,
  keys: ViewKeys,
  contents: readonly MessageContent[],
): Promise<void> {
  for (const run of runsByBytes(contents)) {
    const pipeline = bulk.pipeline()
    for (const content of run) {
      const untilMs = content.expiresAt.getTime() + CONTENT_SLACK_MS
      pipeline.set(keys.body(content), Buffer.from(content.body), 'PXAT', untilMs)
      pipeline.set(keys.raw(content), Buffer.from(content.raw), 'PXAT', untilMs)
    }
    await reach(() => answersOf(pipeline), BULK_TIMEOUT_MS)
  }
}

/** Keys of content that must be there now: what is about to expire may be gone already. */
export function contentKeysHeld(keys: ViewKeys, contents: readonly MessageContent[]): string[] {
  const soonMs = Date.now() + CONTENT_SLACK_MS / 2
  const held = contents.filter(({ expiresAt }) => expiresAt.getTime() + CONTENT_SLACK_MS > soonMs)
  return [...new Set(held.flatMap((content) => [keys.body(content), keys.raw(content)]))]
}

/** Of messages of one partition. */
export async function removeContents(
  client: RedisClient,
  keys: ViewKeys,
  messages: readonly MessageKey[],
): Promise<void> {
  for (const run of runsOf(messages, MAX_KEYS)) {
    const pipeline = client.pipeline()
    for (const message of run) pipeline.unlink(keys.body(message), keys.raw(message))
    await reach(() => answersOf(pipeline))
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

function* runsByBytes(contents: readonly MessageContent[]): Generator<MessageContent[]> {
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
