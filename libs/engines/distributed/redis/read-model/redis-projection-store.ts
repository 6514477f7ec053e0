import type { AccountSlice } from '#libs/domain/account/account.js'
import type { PartitionRange } from '#libs/ports/event-log/event-log.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
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
import { ReadModelUnavailableError } from '#libs/ports/read-model/queries.js'
import type { DeliveryRow, InboxRow, MessageRow, WebhookHealth } from '#libs/ports/read-model/views.js'
import { addChange, StepWrites } from './changes.js'
import { Contents, emptyViews, messagesOf } from './contents.js'
import type { ViewKeys } from './keys.js'
import { reach, runsOf } from './lists.js'
import type { Tables } from './rows.js'
import { APPLY, BEGIN, ESTABLISH } from './scripts.js'

/** Changes with what a key holds: views of another form are rebuilt from the log. */
const FORM = 2
const ADDRESSES_AT_ONCE = 500
const ENDED_AT_ONCE = 50
/** A node of a Cluster may be replaced by another between content and step, more than once hardly. */
const MAX_ATTEMPTS = 4

export class RedisProjectionStore implements ProjectionStore {
  private readonly contents: Contents

  constructor(
    private readonly client: RedisClient,
    bulk: RedisClient,
    private readonly keys: ViewKeys,
    private readonly tables: Tables,
  ) {
    this.contents = new Contents(client, bulk, keys)
  }

  async begin(logId: string, range: PartitionRange, aheadAt?: number): Promise<number | { aheadAt: number }> {
    const { client, keys } = this
    const slot = keys.slot(range)
    const args = [logId, FORM, range.first, range.end]
    for (;;) {
      const standsAt = await reach(() => BEGIN.run(client, [slot], [...args, aheadAt ?? '']))
      if (Array.isArray(standsAt)) return { aheadAt: Number(standsAt[1]) }
      if (standsAt !== 'absent') return Number(standsAt)
      if (!(await emptyViews(client, keys, range))) continue
      const all = [slot, ...keys.tables(range)]
      if ((await reach(() => ESTABLISH.run(client, all, args))) === 'established') return range.first
    }
  }

  inboxes(ids: readonly InboxId[]): Promise<(InboxRow | null)[]> {
    return this.tables.inboxes.getAll(ids)
  }

  messages(keys: readonly MessageKey[]): Promise<(MessageRow | null)[]> {
    return this.tables.messages.getAll(keys)
  }

  deliveries(keys: readonly DeliveryKey[]): Promise<(DeliveryRow | null)[]> {
    return this.tables.deliveries.getAll(keys)
  }

  replays(keys: readonly ReplayKey[]): Promise<(Replay | null)[]> {
    return this.tables.replays.getAll(keys)
  }

  webhookHealth(ids: readonly WebhookId[]): Promise<(WebhookHealth | null)[]> {
    return this.tables.webhookHealth.getAll(ids)
  }

  async accountSlice({ accountId, keyId, webhookId }: AccountSliceKey): Promise<AccountSlice> {
    const { accounts, apiKeys, webhooks } = this.tables
    const [account, key, webhook] = await Promise.all([
      accounts.get(accountId),
      keyId === null ? null : apiKeys.get(keyId),
      webhookId === null ? null : webhooks.get(webhookId),
    ])
    return { account, key, webhook }
  }

  async apply(step: Step): Promise<StepOutcome> {
    const { client, contents } = this
    const slot = this.keys.slot(step)
    const needsMore = step.contents.length > 0 || step.changes.length > 0
    if (needsMore) {
      // The script checks; this look spares what it would refuse from leaving content behind.
      const position = await reach(() => client.hget(slot, 'position'))
      if (position === null) return 'absent'
      if (position !== String(step.from)) return { standsAt: Number(position) }
    }
    await this.removeEnded(step)
    await this.writeAddresses(step)
    const outcome = await this.applyWhole(step)
    if (outcome === 'absent') return 'absent'
    if (outcome !== 'applied') return { standsAt: Number(outcome) }
    await contents.remove(deletedIn(step))
    return 'applied'
  }

  /** The script's answer, once all content is where the step is applied. */
  private async applyWhole(step: Step): Promise<unknown> {
    const { client, keys, tables, contents } = this
    const writes = new StepWrites()
    for (const change of step.changes) addChange(writes, keys, tables, change)
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      await contents.write(step.contents)
      const contentKeys = [...contents.keysHeld(step.contents)]
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
  private async removeEnded({ changes }: Step): Promise<void> {
    const ended = changes.flatMap((change) => (change.type === 'drop-messages' ? [change.inboxId] : []))
    for (const run of runsOf(ended, ENDED_AT_ONCE)) {
      await Promise.all(
        run.map(async (inboxId) => {
          for await (const messages of messagesOf(this.client, this.keys, inboxId)) {
            await this.contents.remove(messages)
          }
        }),
      )
    }
  }

  /** Before the step, since they lie elsewhere. They hold once the inbox is there and has that address. */
  private async writeAddresses({ changes }: Step): Promise<void> {
    const made = changes.flatMap((change) =>
      change.type === 'put-inbox' && change.previous === null ? [change.row.inbox] : [],
    )
    for (const run of runsOf(made, ADDRESSES_AT_ONCE)) {
      await reach(() =>
        Promise.all(run.map(({ id, address }) => this.client.set(this.keys.address(address), id, 'NX'))),
      )
    }
  }
}

function deletedIn({ changes }: Step): MessageKey[] {
  return changes.flatMap((change) =>
    change.type === 'put-message' && change.row.message.state === 'deleted'
      ? [{ inboxId: change.inboxId, messageId: change.row.message.id }]
      : [],
  )
}
