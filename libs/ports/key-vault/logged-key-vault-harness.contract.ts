import { randomUUID } from 'node:crypto'
import type { EventLog, Position, StoredRecord } from '#libs/ports/event-log/event-log.js'
import { PARTITIONS, recordsOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { inboxKeyEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { FickleLog } from './fickle-log.contract.js'
import type { KeyView } from './key-view.js'
import { LoggedKeyVault, type LoggedKeyVaultOptions } from './logged-key-vault.js'
import { MasterKeys } from './master-key.js'
import { makeSecretKey } from './content.js'

/** What a vault stands on, for one test: a log of PARTITIONS, and a view. */
export interface Ground {
  log: EventLog
  reopenLog(): Promise<EventLog>
  viewUnder(prefix: string): KeyView
  /** Everything of the view, to be put back. */
  copyView(prefix: string): Promise<() => Promise<void>>
  flushView(prefix: string): Promise<void>
  close(): Promise<void>
}

export function masterKeys(text: string): MasterKeys {
  const keys = MasterKeys.parse(text)
  if (keys === null) throw new Error('the test has no master key')
  return keys
}

/** Vaults as several processes have them, on one log and one view. */
export class VaultHarness {
  private readonly vaults: LoggedKeyVault[] = []
  private readonly prefix = `test-${randomUUID()}.`
  readonly masterText = makeSecretKey().toString('base64')
  readonly fickle: FickleLog
  readonly view: KeyView
  readonly errors: unknown[] = []
  nowMs = Date.now()

  static async make(ground: Ground): Promise<VaultHarness & { vault: LoggedKeyVault }> {
    const harness = new VaultHarness(ground)
    return Object.assign(harness, { vault: await harness.open() })
  }

  private constructor(readonly ground: Ground) {
    this.fickle = new FickleLog(() => ground.log)
    this.view = ground.viewUnder(this.prefix)
  }

  async open(options: Partial<LoggedKeyVaultOptions> = {}): Promise<LoggedKeyVault> {
    const vault = await LoggedKeyVault.open({
      log: this.fickle,
      view: this.view,
      masterKeys: masterKeys(this.masterText),
      now: () => new Date(this.nowMs),
      onError: (error) => this.errors.push(error),
      ...options,
    })
    this.vaults.push(vault)
    return vault
  }

  async reopen(): Promise<LoggedKeyVault> {
    await this.closeVaults()
    this.ground.log = await this.ground.reopenLog()
    return this.open()
  }

  async append(event: InboxKeyEvent): Promise<Position> {
    const occurrence = { id: mintId('evt'), time: new Date(this.nowMs), source: 'test', event }
    return this.ground.log.append('inbox-keys', inboxKeyEventCodec.encode(occurrence))
  }

  partitionOf(key: string): number {
    return partitionOf(key, PARTITIONS)
  }

  /** What stands on the log in that key's partition. */
  async recordsBeside(key: string): Promise<StoredRecord[]> {
    const { partitions } = await this.ground.log.topology('inbox-keys')
    const range = partitions.find(({ partition }) => partition === this.partitionOf(key))
    return range === undefined ? [] : recordsOf(this.ground.log, range)
  }

  /** The last word of the log about an inbox: what compaction leaves. */
  async lastWordOn(key: string): Promise<InboxKeyEvent | null> {
    const record = (await this.recordsBeside(key)).findLast((candidate) => candidate.key === key)
    const decoded = record === undefined ? null : inboxKeyEventCodec.decode(record)
    return decoded?.kind === 'event' ? decoded.recorded.event : null
  }

  copyView(): Promise<() => Promise<void>> {
    return this.ground.copyView(this.prefix)
  }

  flushView(): Promise<void> {
    return this.ground.flushView(this.prefix)
  }

  async close(): Promise<void> {
    await this.closeVaults()
    await this.flushView()
    await this.ground.close()
  }

  private async closeVaults(): Promise<void> {
    await Promise.all(this.vaults.splice(0).map((vault) => vault.close()))
  }
}
