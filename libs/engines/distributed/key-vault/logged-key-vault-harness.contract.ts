import { randomUUID } from 'node:crypto'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { inboxKeyEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { PARTITIONS, recordsOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { EventLog, Position, StoredRecord } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { makeSecretKey } from '#libs/ports/key-vault/sealing.js'
import { FaultyLog } from './faulty-log.contract.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import type { KeyView } from '#libs/engines/distributed/redis/key-vault/redis-key-view.js'
import { openLoggedKeyVault, type LoggedKeyVaultOptions } from './logged-key-vault.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'

/** The stores of a vault for one test: a log with PARTITIONS partitions, and a view. */
export interface VaultStores {
  log: EventLog
  reopenLog(): Promise<EventLog>
  viewUnder(prefix: string): KeyView
  /** Copies the whole view; resolves with a function that restores it. */
  copyView(prefix: string): Promise<() => Promise<void>>
  flushView(prefix: string): Promise<void>
  close(): Promise<void>
}

export function masterKeys(text: string): MasterKeys {
  const keys = MasterKeys.parse(text)
  if (keys === null) throw new Error('the test has no master key')
  return keys
}

/** Vaults of several processes on the same log and view. */
export class VaultHarness {
  private readonly vaults: KeyVault[] = []
  private readonly prefix = `test-${randomUUID()}.`
  readonly masterText = makeSecretKey().toString('base64')
  readonly faultyLog: FaultyLog
  readonly view: KeyView
  readonly errors: unknown[] = []
  nowMs = Date.now()

  static async make(stores: VaultStores): Promise<VaultHarness & { vault: KeyVault }> {
    const harness = new VaultHarness(stores)
    return Object.assign(harness, { vault: await harness.open() })
  }

  private constructor(readonly stores: VaultStores) {
    this.faultyLog = new FaultyLog(() => stores.log)
    this.view = stores.viewUnder(this.prefix)
  }

  async open(options: Partial<LoggedKeyVaultOptions> = {}): Promise<KeyVault> {
    const vault = await openLoggedKeyVault({
      log: this.faultyLog,
      view: this.view,
      masterKeys: masterKeys(this.masterText),
      now: () => new Date(this.nowMs),
      onError: (error) => this.errors.push(error),
      ...options,
    })
    this.vaults.push(vault)
    return vault
  }

  async reopen(): Promise<KeyVault> {
    await this.closeVaults()
    this.stores.log = await this.stores.reopenLog()
    return this.open()
  }

  async append(event: InboxKeyEvent): Promise<Position> {
    const occurrence = { id: mintId('evt'), time: new Date(this.nowMs), source: 'test', event }
    return this.stores.log.append('inbox-keys', inboxKeyEventCodec.encode(occurrence))
  }

  partitionOf(key: string): number {
    return partitionOf(key, PARTITIONS)
  }

  /** All records in the partition of that key. */
  async recordsInPartitionOf(key: string): Promise<StoredRecord[]> {
    const { partitions } = await this.stores.log.topology('inbox-keys')
    const range = partitions.find(({ partition }) => partition === this.partitionOf(key))
    return range === undefined ? [] : recordsOf(this.stores.log, range)
  }

  /** The last event with that key, which compaction keeps. */
  async lastEventOf(key: string): Promise<InboxKeyEvent | null> {
    const record = (await this.recordsInPartitionOf(key)).findLast((candidate) => candidate.key === key)
    const decoded = record === undefined ? null : inboxKeyEventCodec.decode(record)
    return decoded?.kind === 'event' ? decoded.recorded.event : null
  }

  copyView(): Promise<() => Promise<void>> {
    return this.stores.copyView(this.prefix)
  }

  flushView(): Promise<void> {
    return this.stores.flushView(this.prefix)
  }

  async close(): Promise<void> {
    await this.closeVaults()
    await this.flushView()
    await this.stores.close()
  }

  private async closeVaults(): Promise<void> {
    await Promise.all(this.vaults.splice(0).map((vault) => vault.close()))
  }
}
