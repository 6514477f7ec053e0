import { BULK_TIMEOUT_MS, answersOf, reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { Contents, RowKey, TableOf } from '#libs/ports/read-model/view-store.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import type { ViewKeys } from './keys.js'

// Each of the contents of a row is a key that expires, and is not written by the step's script.

/** Contents expire this long after the latest end of their inbox, because clocks differ and an inbox ends a little late. */
export const CONTENT_SLACK_MS = 3_600_000
/** Bytes of contents in one round trip. A larger value is sent alone. */
const MAX_BYTES = 1_048_576
const MAX_KEYS = 500

/** Idempotent. Contents that no step refers to are never read, and expire. */
export async function writeContents(
  bulk: RedisClient,
  keys: ViewKeys,
  contents: readonly Contents[],
): Promise<void> {
  for (const chunk of chunksByBytes(contents)) {
    const pipeline = bulk.pipeline()
    for (const { table, key, parts, expiresAt } of chunk) {
      const untilMs = expiresAt.getTime() + CONTENT_SLACK_MS
      for (const [part, bytes] of Object.entries(parts)) {
        pipeline.set(keys.content(table, key, part), Buffer.from(bytes), 'PXAT', untilMs)
      }
    }
    await reach(() => answersOf(pipeline), BULK_TIMEOUT_MS)
  }
}

/** The keys of contents that must exist. Contents that are about to expire may be gone already. */
export function contentKeysHeld(keys: ViewKeys, contents: readonly Contents[]): string[] {
  const soonMs = Date.now() + CONTENT_SLACK_MS / 2
  const held = contents.filter(({ expiresAt }) => expiresAt.getTime() + CONTENT_SLACK_MS > soonMs)
  const named = held.flatMap(({ table, key }) => contentKeysOf(keys, table, key))
  return [...new Set(named)]
}

export function contentKeysOf(keys: ViewKeys, table: TableOf<unknown>, key: RowKey): string[] {
  return table.parts.map((part) => keys.content(table, key, part))
}

/** Removes contents of one partition. */
export async function removeContents(client: RedisClient, contentKeys: readonly string[]): Promise<void> {
  for (const chunk of chunksOf(contentKeys, MAX_KEYS)) {
    await reach(() => client.unlink(...chunk))
  }
}

function* chunksByBytes(contents: readonly Contents[]): Generator<Contents[]> {
  let chunk: Contents[] = []
  let bytes = 0
  for (const each of contents) {
    const more = Object.values(each.parts).reduce((sum, part) => sum + part.length, 0)
    if (chunk.length > 0 && bytes + more > MAX_BYTES) {
      yield chunk
      chunk = []
      bytes = 0
    }
    chunk.push(each)
    bytes += more
  }
  if (chunk.length > 0) yield chunk
}
