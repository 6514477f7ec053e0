import { randomBytes, randomUUID } from 'node:crypto'
import type { Database, RootDatabase } from 'lmdb'
import { closeLmdbFile, commit, openLmdbStore } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { PeriodicTask } from '#libs/runtime/timing.js'
import {
  IdempotencyUnavailableError,
  SEED_BYTES,
  type IdempotencyStore,
  type Repeatable,
  type Reservation,
  type Run,
} from '#libs/ports/idempotency/idempotency-store.js'

/*
 * Relies on lmdb 3 with commits that are synced to disk before they are visible, and on one process using the file: leases
 * are kept in memory only, and end with the process.
 */

export interface LmdbIdempotencyOptions {
  /** A file of its own. */
  path: string
  leaseMs: number
  keptMs: number
  now: () => Date
  /** Called if old records could not be removed. They are removed the next time. */
  onPruneError: (error: unknown) => void
}

interface RecordRow {
  fingerprint: string
  seed: Uint8Array
  firstAtMs: number
  expiresAtMs: number
  answer: Uint8Array | null
}

type Root = RootDatabase<unknown, string>
type ExpiryKey = [expiresAtMs: number, id: string]

interface Lease {
  token: string
  fingerprint: string
  /** In milliseconds of the monotonic clock. */
  endsAtMs: number
}

const PRUNE_EVERY_MS = 60_000
const MAX_PRUNED_AT_ONCE = 1_000

export class LmdbIdempotencyStore implements IdempotencyStore {
  private readonly records: Database<RecordRow, string>
  private readonly expiries: Database<true, ExpiryKey>
  private readonly leases = new Map<string, Lease>()
  private readonly pruning: PeriodicTask

  /** Rejects if the file can't be opened. */
  static open(options: LmdbIdempotencyOptions): Promise<LmdbIdempotencyStore> {
    const file = { path: options.path, syncMode: 'before-visible', maxDbs: 2 } as const
    return openLmdbStore(file, (root: Root) => new LmdbIdempotencyStore(options, root))
  }

  private constructor(
    private readonly options: LmdbIdempotencyOptions,
    private readonly root: Root,
  ) {
    this.records = root.openDB<RecordRow, string>({ name: 'records' })
    this.expiries = root.openDB<true, ExpiryKey>({ name: 'expiries' })
    const work = () => this.prune().catch(options.onPruneError)
    this.pruning = new PeriodicTask({ work, everyMs: PRUNE_EVERY_MS })
    this.pruning.start()
  }

  get leaseMs(): number {
    return this.options.leaseMs
  }

  async reserve({ id, fingerprint }: Repeatable): Promise<Reservation> {
    const found = this.leases.get(id)
    const lease = found !== undefined && found.endsAtMs > performance.now() ? found : null
    const record = this.read(id)
    const known = lease ?? record
    if (known !== null && known.fingerprint !== fingerprint) {
      return { state: 'reused', fingerprint: known.fingerprint }
    }
    if (lease !== null) return { state: 'in-use' }
    if (record?.answer != null) return { state: 'stored', answer: record.answer }
    // Leased before any await, so that a concurrent repeat of the request finds the lease.
    const token = randomUUID()
    this.leases.set(id, { token, fingerprint, endsAtMs: performance.now() + this.leaseMs })
    const { seed, firstAtMs } = record ?? (await this.begin(id, fingerprint, token))
    return { state: 'run', run: { id, token, seed, firstAtMs } }
  }

  renew({ id, token }: Run): Promise<void> {
    const lease = this.leaseOf(id, token)
    if (lease !== null) lease.endsAtMs = performance.now() + this.leaseMs
    return Promise.resolve()
  }

  async finish({ id, token }: Run, answer: Uint8Array): Promise<void> {
    const lease = this.leaseOf(id, token)
    if (lease === null) return
    try {
      await this.write(() => {
        const record = this.records.get(id)
        if (record === undefined || this.leaseOf(id, token) === null) return
        this.put(id, { ...record, answer, expiresAtMs: this.expiryFromNow() })
      })
    } finally {
      this.drop(id, token)
    }
  }

  async release({ id, token }: Run, state: 'resumable' | 'undone'): Promise<void> {
    if (this.leaseOf(id, token) === null) return
    try {
      if (state === 'undone') await this.write(() => this.remove(id))
    } finally {
      this.drop(id, token)
    }
  }

  /** Records in the file, expired ones included. */
  count(): number {
    return this.records.getCount()
  }

  async close(): Promise<void> {
    await this.pruning.stop()
    await closeLmdbFile(this.root)
  }

  private async begin(id: string, fingerprint: string, token: string): Promise<RecordRow> {
    const record: RecordRow = {
      fingerprint,
      seed: randomBytes(SEED_BYTES),
      firstAtMs: this.options.now().getTime(),
      expiresAtMs: this.expiryFromNow(),
      answer: null,
    }
    try {
      await this.write(() => this.put(id, record))
      return record
    } catch (error) {
      this.drop(id, token)
      throw error
    }
  }

  /** Removes expired records, and leases that have ended. */
  private async prune(): Promise<void> {
    const nowMs = performance.now()
    for (const [id, { endsAtMs }] of this.leases) if (endsAtMs <= nowMs) this.leases.delete(id)
    const end: ExpiryKey = [this.options.now().getTime() + 1, '']
    for (;;) {
      const expired = [...this.expiries.getKeys({ end, limit: MAX_PRUNED_AT_ONCE })]
      if (expired.length > 0) {
        await this.write(() => {
          // Keep a record that was created again since.
          for (const [expiresAtMs, id] of expired) {
            if (this.records.get(id)?.expiresAtMs === expiresAtMs) this.remove(id)
          }
        })
      }
      if (expired.length < MAX_PRUNED_AT_ONCE) return
    }
  }

  private read(id: string): RecordRow | null {
    const record = this.records.get(id)
    return record === undefined || record.expiresAtMs <= this.options.now().getTime() ? null : record
  }

  private put(id: string, record: RecordRow): void {
    this.remove(id)
    this.records.putSync(id, record)
    this.expiries.putSync([record.expiresAtMs, id], true)
  }

  private remove(id: string): void {
    const record = this.records.get(id)
    if (record === undefined) return
    this.records.removeSync(id)
    this.expiries.removeSync([record.expiresAtMs, id])
  }

  private leaseOf(id: string, token: string): Lease | null {
    const lease = this.leases.get(id)
    return lease?.token === token ? lease : null
  }

  private drop(id: string, token: string): void {
    if (this.leaseOf(id, token) !== null) this.leases.delete(id)
  }

  private expiryFromNow(): number {
    return this.options.now().getTime() + this.options.keptMs
  }

  private async write(work: () => void): Promise<void> {
    try {
      await commit(this.root, work)
    } catch (cause) {
      throw new IdempotencyUnavailableError('the records of requests could not be stored', { cause })
    }
  }
}
