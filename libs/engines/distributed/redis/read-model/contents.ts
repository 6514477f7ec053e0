import type { InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import { BULK_TIMEOUT_MS, answersOf, reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { MessageKey } from '#libs/ports/read-model/projection-store.js'
import type { MessageContent } from '#libs/ports/read-model/views.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import type { ViewKeys } from './keys.js'
import { idsIn } from './lists.js'

// Parsed bodies and sources of mails. Each is a key that expires, and is not written by the step's script.

/** Content expires this long after the latest end of its inbox, because clocks differ and an inbox ends a little late. */
export const CONTENT_SLACK_MS = 3_600_000
/** Bytes of content in one round trip. A larger content is sent alone. */
const MAX_BYTES = 1_048_576
const MAX_KEYS = 500

/** Idempotent. Content that no step refers to is never read, and expires. */
export async function writeContents(
  bulk: RedisClient,
  keys: ViewKeys,
  contents: readonly MessageContent[],
): Promise<void> {
  for (const chunk of chunksByBytes(contents)) {
    const pipeline = bulk.pipeline()
    for (const content of chunk) {
      const untilMs = content.expiresAt.getTime() + CONTENT_SLACK_MS
      pipeline.set(keys.body(content), Buffer.from(content.body), 'PXAT', untilMs)
      pipeline.set(keys.raw(content), Buffer.from(content.raw), 'PXAT', untilMs)
    }
    await reach(() => answersOf(pipeline), BULK_TIMEOUT_MS)
  }
}

/** The keys of contents that must exist. Content that is about to expire may be gone already. */
export function contentKeysHeld(keys: ViewKeys, contents: readonly MessageContent[]): string[] {
  const soonMs = Date.now() + CONTENT_SLACK_MS / 2
  const held = contents.filter(({ expiresAt }) => expiresAt.getTime() + CONTENT_SLACK_MS > soonMs)
  return [...new Set(held.flatMap((content) => [keys.body(content), keys.raw(content)]))]
}

/** Removes the contents of messages of one partition. */
export async function removeContents(
  client: RedisClient,
  keys: ViewKeys,
  messages: readonly MessageKey[],
): Promise<void> {
  for (const chunk of chunksOf(messages, MAX_KEYS)) {
    const pipeline = client.pipeline()
    for (const message of chunk) pipeline.unlink(keys.body(message), keys.raw(message))
    await reach(() => answersOf(pipeline))
  }
}

/** All messages of an inbox, including deleted ones, in chunks. A message may be yielded twice. */
export async function* messagesOf(
  client: RedisClient,
  keys: ViewKeys,
  inboxId: InboxId,
): AsyncGenerator<MessageKey[]> {
  for await (const ids of idsIn<MessageId>(client, keys.messages(inboxId), MAX_KEYS)) {
    yield ids.map((messageId) => ({ inboxId, messageId }))
  }
}

function* chunksByBytes(contents: readonly MessageContent[]): Generator<MessageContent[]> {
  let chunk: MessageContent[] = []
  let bytes = 0
  for (const content of contents) {
    const more = content.body.length + content.raw.length
    if (chunk.length > 0 && bytes + more > MAX_BYTES) {
      yield chunk
      chunk = []
      bytes = 0
    }
    chunk.push(content)
    bytes += more
  }
  if (chunk.length > 0) yield chunk
}
