import { randomBytes, randomUUID } from 'node:crypto'
import type { Database, RootDatabase } from 'lmdb'
import { closeLmdbFile, commit, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'
import {
  IdempotencyUnavailableError,
  SEED_BYTES,
  type IdempotencyStore,
  type Repeatable,
  type Reservation,
  type Run,
} from '#libs/ports/idempotency/idempotency-store.js'

/*
 * Relies on lmdb 3 synced before seen, where a visible commit has been synced to disk, and on one process having the
 * file: leases are kept in memory alone, so that one which ends with its process keeps nobody out.
 */

export interface LmdbIdempotencyOptions {
  /** A file of its own. */
  path: string
  leaseMs: number
  keptMs: number
  now: () => Date
  /** Told where old records could not be removed; that is tried again. */
  onPruneError: (error: unknown) => void
}

interface RecordRow {
  fingerprint: string
  seed: Uint8Array
  firstAtMs: number
  expiresAtMs: number
  answer: Uint8Array | null
}

type ExpiryKey = [expiresAtMs: number, id: string]

interface Lease {
  token: string
  fingerprint: string
  /** By a clock that only goes on. */
  endsAtMs: number
}

const PRUNE_EVERY_MS = 60_000
const MAX_PRUNED_AT_ONCE = 1_000

export class LmdbIdempotencyStore implements IdempotencyStore {
  private readonly records: Database<RecordRow, string>
  private readonly expiries: Database<true, ExpiryKey>
  private readonly leases = new Map<string, Lease>()
  private readonly pruning: Repetition

  /** Rejects if the file can't be opened. */
  static async open(options: LmdbIdempotencyOptions): Promise<LmdbIdempotencyStore> {
    const root = openLmdbFile<unknown, string>({ path: options.path, isSynced: 'before-seen', maxDbs: 2 })
    try {
      return new LmdbIdempotencyStore(options, root)
    } catch (error) {
      await closeLmdbFile(root)
      throw error
    }
  }

  private constructor(
    private readonly options: LmdbIdempotencyOptions,
    private readonly root: RootDatabase<unknown, string>,
  ) {
    this.records = root.openDB<RecordRow, string>({ name: 'records' })
    this.expiries = root.openDB<true, ExpiryKey>({ name: 'expiries' })
    const work = () => this.prune().catch(options.onPruneError)
    this.pruning = new Repetition({ work, everyMs: PRUNE_EVERY_MS })
    this.pruning.start()
  }

  get leaseMs(): number {
    return this.options.leaseMs
  }

  async reserve({ id, fingerprint }: Repeatable): Promise<Reservation> {
    const standing = this.leases.get(id)
    if (standing !== undefined && standing.endsAtMs > performance.now()) {
      return standing.fingerprint === fingerprint
        ? { state: 'in-use' }
        : { state: 'reused', fingerprint: standing.fingerprint }
    }
    const known = this.read(id)
    if (known !== null && known.fingerprint !== fingerprint) {
      return { state: 'reused', fingerprint: known.fingerprint }
    }
    if (known?.answer != null) return { state: 'stored', answer: known.answer }
    // Before anything is waited for: who comes at the same moment finds the lease.
    const token = randomUUID()
    this.leases.set(id, { token, fingerprint, endsAtMs: performance.now() + this.leaseMs })
    const { seed, firstAtMs } = known ?? (await this.begin(id, fingerprint, token))
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
        if (record !== undefined && this.leaseOf(id, token) !== null)
          this.put(id, { ...record, answer, expiresAtMs: this.expiryFromNow() })
      })
    } finally {
      this.drop(id, token)
    }
  }

  async release({ id, token }: Run, left: 'resumable' | 'undone'): Promise<void> {
    if (this.leaseOf(id, token) === null) return
    try {
      if (left === 'undone') await this.write(() => this.remove(id))
    } finally {
      this.drop(id, token)
    }
  }

  /** Records in the file, those included whose time is over. */
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

  /** Removes what has been kept for long enough; a request that is running still has its lease. */
  private async prune(): Promise<void> {
    const nowMs = performance.now()
    for (const [id, { endsAtMs }] of this.leases) if (endsAtMs <= nowMs) this.leases.delete(id)
    const end: ExpiryKey = [this.options.now().getTime() + 1, '']
    for (;;) {
      const over = [...this.expiries.getKeys({ end, limit: MAX_PRUNED_AT_ONCE })]
      if (over.length > 0) {
        await this.write(() => {
          // One that was begun anew since the look is to stay.
          for (const [expiresAtMs, id] of over) {
            if (this.records.get(id)?.expiresAtMs === expiresAtMs) this.remove(id)
          }
        })
      }
      if (over.length < MAX_PRUNED_AT_ONCE) return
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
      throw new IdempotencyUnavailableError('what became of requests could not be stored', { cause })
    }
  }
}
