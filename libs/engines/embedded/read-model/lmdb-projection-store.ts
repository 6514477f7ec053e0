import type { AccountSlice } from '#libs/domain/account/account.js'
import type { PartitionRange } from '#libs/ports/event-log/event-log.js'
import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type {
  AccountSliceKey,
  DeliveryKey,
  MessageKey,
  ProjectionStore,
  ReplayKey,
  Step,
  StepOutcome,
} from '#libs/ports/read-model/projection-store.js'
import {
  VIEWS_FORM,
  type DeliveryRow,
  type InboxRow,
  type MessageRow,
  type WebhookHealth,
} from '#libs/ports/read-model/views.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { applyChange, putContent, removeInbox } from './changes.js'
import { removeWebhooksOf } from './lmdb-deliveries.js'
import { accountTablesOf, type ProgressRow, type Tables } from './tables.js'

const MAX_REMOVED_AT_ONCE = 200

export class LmdbProjectionStore implements ProjectionStore {
  constructor(private readonly tables: Tables) {}

  async begin(logId: string, range: PartitionRange, aheadAt?: number): Promise<number | { aheadAt: number }> {
    const { topic, partition, first, end } = range
    const { root, progress } = this.tables
    // In one transaction, so that a step applied at the same time is not undone.
    const found = await commit(root, () => {
      const row = progress.get([topic, partition])
      if (row?.logId !== logId || row.form !== VIEWS_FORM) return null
      if (row.position > end) return row.position === aheadAt ? null : { aheadAt: row.position }
      // Records that the log no longer has can't be applied: the views continue from its first record.
      const position = Math.max(row.position, first)
      const begunAtMs = Math.max(Date.now(), row.begunAtMs + 1)
      progress.putSync([topic, partition], { ...row, position, target: end, begunAtMs })
      return position
    })
    if (found !== null) return found
    await this.clear(range)
    const created: ProgressRow = {
      logId,
      form: VIEWS_FORM,
      position: first,
      target: end,
      begunAtMs: Date.now(),
    }
    await commit(root, () => progress.putSync([topic, partition], created))
    return first
  }

  inboxes(ids: readonly InboxId[]): Promise<(InboxRow | null)[]> {
    return Promise.resolve(ids.map((id) => this.tables.inboxes.get(id) ?? null))
  }

  messages(keys: readonly MessageKey[]): Promise<(MessageRow | null)[]> {
    return Promise.resolve(
      keys.map(({ inboxId, messageId }) => this.tables.messages.get([inboxId, messageId]) ?? null),
    )
  }

  deliveries(keys: readonly DeliveryKey[]): Promise<(DeliveryRow | null)[]> {
    return Promise.resolve(
      keys.map(({ webhookId, deliveryId }) => this.tables.deliveries.get([webhookId, deliveryId]) ?? null),
    )
  }

  replays(keys: readonly ReplayKey[]): Promise<(Replay | null)[]> {
    return Promise.resolve(
      keys.map(({ webhookId, replayId }) => this.tables.replays.get([webhookId, replayId]) ?? null),
    )
  }

  webhookHealth(ids: readonly WebhookId[]): Promise<(WebhookHealth | null)[]> {
    const healthOf = (webhookId: WebhookId) => {
      const row = this.tables.webhookHealth.get(webhookId)
      return row === undefined ? null : { webhookId, failingSince: row.failingSince }
    }
    return Promise.resolve(ids.map(healthOf))
  }

  accountSlice({ accountId, keyId, webhookId }: AccountSliceKey): Promise<AccountSlice> {
    const { accounts, keys, webhooks } = this.tables
    const account = accounts.get(accountId) ?? null
    const key = keyId === null ? null : (keys.get(keyId) ?? null)
    const webhook = webhookId === null ? null : (webhooks.get(webhookId) ?? null)
    return Promise.resolve({ account, key, webhook })
  }

  apply(step: Step): Promise<StepOutcome> {
    const { topic, partition, from, to, changes, contents } = step
    return commit(this.tables.root, (): StepOutcome => {
      const row = this.tables.progress.get([topic, partition])
      if (row === undefined) return 'absent'
      if (row.position !== from) return { position: row.position }
      for (const content of contents) putContent(this.tables, content)
      for (const change of changes) applyChange(this.tables, partition, change)
      this.tables.progress.putSync([topic, partition], { ...row, position: to } satisfies ProgressRow)
      return 'applied'
    })
  }

  /** If the process is killed midway, the progress row is gone, and the next process that begins clears the rest. */
  private async clear({ topic, partition }: PartitionRange): Promise<void> {
    const { progress, inboxes, root } = this.tables
    await commit(root, () => progress.removeSync([topic, partition]))
    if (topic === 'account-events') {
      await Promise.all(accountTablesOf(this.tables).map((table) => table.clearAsync()))
      return
    }
    if (topic === 'webhook-events') {
      await removeWebhooksOf(this.tables, partition)
      return
    }
    const ids: InboxId[] = []
    for (const { key, value } of inboxes.getRange({})) if (value.partition === partition) ids.push(key)
    for (const some of chunksOf(ids, MAX_REMOVED_AT_ONCE)) {
      await commit(root, () => {
        for (const id of some) {
          const row = inboxes.get(id)
          if (row !== undefined) removeInbox(this.tables, partition, row.inbox)
        }
      })
    }
  }
}
