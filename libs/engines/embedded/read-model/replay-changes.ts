import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import { isAsking, type Replay } from '#libs/domain/webhook/replay.js'
import { replayRangeOf, type ReplayRowKey, type Tables } from './tables.js'

const REMOVED_AT_ONCE = 500

/** To be called within a transaction, as the others are. */
export function putReplay(tables: Tables, replay: Replay): void {
  const key: ReplayRowKey = [replay.webhookId, replay.id]
  tables.replays.putSync(key, replay)
  if (isAsking(replay)) tables.askingReplays.putSync(key, true)
  else tables.askingReplays.removeSync(key)
}

export function removeReplaysOf(tables: Tables, webhookId: WebhookId): void {
  for (const key of [...tables.replays.getKeys(replayRangeOf(webhookId))]) removeReplay(tables, key)
}

/** Removes those that were asked for before then, a little at a time; resolves with how many. */
export async function removeOldReplays(tables: Tables, before: Date): Promise<number> {
  const old: ReplayRowKey[] = []
  for (const { key, value } of tables.replays.getRange({})) if (value.requestedAt < before) old.push(key)
  for (let at = 0; at < old.length; at += REMOVED_AT_ONCE) {
    await commit(tables.root, () => {
      for (const key of old.slice(at, at + REMOVED_AT_ONCE)) removeReplay(tables, key)
    })
  }
  return old.length
}

function removeReplay(tables: Tables, key: ReplayRowKey): void {
  tables.askingReplays.removeSync(key)
  tables.replays.removeSync(key)
}
