import { randomBytes, randomUUID } from 'node:crypto'
import type { Database, RootDatabase } from 'lmdb'
import { closeLmdbFile, commit, openLmdbStore } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { PeriodicTask } from '#libs/runtime/timing.js'
import {
  IdempotencyUnavailableError,
  KEPT_MS,
  LEASE_MS,
  SEED_BYTES,
  type IdempotencyStore,
  type Reservation,
  type Run,
} from '#libs/ports/idempotency/idempotency-store.js'

/*
 * Relies on lmdb 3 with commits that are synced to disk before they are visible, and on one process using the file: the
 * leases of earlier processes have ended.
 */

export interface LmdbIdempotencyOptions {
  /** A file of its own. */
  path: string
  now: () => Date
  leaseMs?: number
  keptMs?: number
  /** Called if old records could not be removed. They are removed the next time. */
  onPruneError: (error: unknown) => void
}

interface RecordRow {
  fingerprint: string
  seed: Uint8Array
  firstAtMs: number
  expiresAtMs: number
  answer: Uint8Array | null
  lease?: Lease | null
}

interface Lease {
  token: string
  /** The process that has the lease. */
  holder: string
  /** In milliseconds of the process's monotonic clock. */
  endsAtMs: number
}

type Root = RootDatabase<unknown, string>
type ExpiryKey = [expiresAtMs: number, id: string]

const PRUNE_EVERY_MS = 60_000
const MAX_PRUNED_AT_ONCE = 1_000

/** Rejects if the file can't be opened. `count` is the number of records in the file, expired ones included. */
export function openLmdbIdempotency(
  options: LmdbIdempotencyOptions,
): Promise<IdempotencyStore & { count(): number }> {
  const file = { path: options.path, syncMode: 'before-visible', maxDbs: 2 } as const
  return openLmdbStore(file, (root: Root) => lmdbIdempotency(root, options))
}

function lmdbIdempotency(
  root: Root,
  { now, leaseMs = LEASE_MS, keptMs = KEPT_MS, onPruneError }: LmdbIdempotencyOptions,
): IdempotencyStore & { count(): number } {
  const records: Database<RecordRow, string> = root.openDB({ name: 'records' })
  const expiries: Database<true, ExpiryKey> = root.openDB({ name: 'expiries' })
  /** Identifies this process. */
  const holder = randomUUID()
  const pruning = new PeriodicTask({ work: () => prune().catch(onPruneError), everyMs: PRUNE_EVERY_MS })
  pruning.start()

  return {
    leaseMs,

    reserve: ({ id, fingerprint }) =>
      write((): Reservation => {
        const record = find(id) ?? makeRecord(fingerprint)
        if (record.fingerprint !== fingerprint) return { state: 'reused', fingerprint: record.fingerprint }
        if (record.answer !== null) return { state: 'stored', answer: record.answer }
        if (isLeased(record)) return { state: 'in-use' }
        const token = randomUUID()
        put(id, { ...record, lease: leaseFor(token) })
        return { state: 'run', run: { id, token, seed: record.seed, firstAtMs: record.firstAtMs } }
      }),

    renew: (run) => change(run, (record) => ({ ...record, lease: leaseFor(run.token) })),

    finish: (run, answer) =>
      change(run, (record) => ({ ...record, answer, lease: null, expiresAtMs: nowMs() + keptMs })),

    release: (run, state) =>
      change(run, (record) => (state === 'undone' ? null : { ...record, lease: null })),

    count: () => records.getCount(),

    async close() {
      await pruning.stop()
      await closeLmdbFile(root)
    },
  }

  /** Changes or removes the record of a run, unless another run has taken over. */
  function change({ id, token }: Run, changed: (record: RecordRow) => RecordRow | null): Promise<void> {
    return write(() => {
      const record = records.get(id)
      if (record?.lease?.token !== token) return
      const next = changed(record)
      if (next === null) remove(id)
      else put(id, next)
    })
  }

  async function prune(): Promise<void> {
    const end: ExpiryKey = [nowMs() + 1, '']
    for (;;) {
      const expired = [...expiries.getKeys({ end, limit: MAX_PRUNED_AT_ONCE })]
      if (expired.length > 0) {
        await write(() => {
          // Keep a record that was created again since.
          for (const [expiresAtMs, id] of expired) {
            if (records.get(id)?.expiresAtMs === expiresAtMs) remove(id)
          }
        })
      }
      if (expired.length < MAX_PRUNED_AT_ONCE) return
    }
  }

  function makeRecord(fingerprint: string): RecordRow {
    const firstAtMs = nowMs()
    const seed = randomBytes(SEED_BYTES)
    return { fingerprint, seed, firstAtMs, expiresAtMs: firstAtMs + keptMs, answer: null }
  }

  function find(id: string): RecordRow | null {
    const record = records.get(id)
    return record === undefined || record.expiresAtMs <= nowMs() ? null : record
  }

  function put(id: string, record: RecordRow): void {
    remove(id)
    records.putSync(id, record)
    expiries.putSync([record.expiresAtMs, id], true)
  }

  function remove(id: string): void {
    const record = records.get(id)
    if (record === undefined) return
    records.removeSync(id)
    expiries.removeSync([record.expiresAtMs, id])
  }

  function leaseFor(token: string): Lease {
    return { token, holder, endsAtMs: performance.now() + leaseMs }
  }

  function isLeased({ lease = null }: RecordRow): boolean {
    return lease !== null && lease.holder === holder && lease.endsAtMs > performance.now()
  }

  function nowMs(): number {
    return now().getTime()
  }

  async function write<Result>(work: () => Result): Promise<Result> {
    try {
      return await commit(root, work)
    } catch (cause) {
      throw new IdempotencyUnavailableError('the records of requests could not be stored', { cause })
    }
  }
}
