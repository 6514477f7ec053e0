import { randomUUID } from 'node:crypto'
import { until } from '#test/harness/until.js'
import { SEED_BYTES, type IdempotencyStore, type Repeatable, type Run } from './idempotency-store.js'

export interface IdempotencyStoreHarness {
  one: IdempotencyStore
  /** The store of another process; the same object if only one process may use the store. */
  other: IdempotencyStore
  /** Opens the store as a new process would after the process that had `one` was killed. */
  reopen(): Promise<IdempotencyStore>
  close(): Promise<void>
}

export interface StoreTimes {
  leaseMs: number
  keptMs: number
}

const LASTING: StoreTimes = { leaseMs: 10_000, keptMs: 60_000 }
const SHORT_LEASE: StoreTimes = { ...LASTING, leaseMs: 3_000 }

export function describeIdempotencyStore(
  name: string,
  make: (times: StoreTimes) => Promise<IdempotencyStoreHarness>,
): void {
  describe(`${name} as an idempotency store`, () => {
    let harness: IdempotencyStoreHarness
    let request: Repeatable

    async function begin(times = LASTING): Promise<void> {
      harness = await make(times)
      request = { id: randomUUID(), fingerprint: 'this' }
    }
    afterEach(() => harness.close())

    async function mustRun(store = harness.one, wanted = request): Promise<Run> {
      const reserved = await store.reserve(wanted)
      if (reserved.state !== 'run') throw new Error(`the request is ${reserved.state}`)
      return reserved.run
    }

    const another = () => ({ ...request, fingerprint: 'another' })
    const answer = Buffer.from([0, 1, 2, 255, 254])

    it('runs a request once, and returns its answer from then on', async () => {
      await begin()
      const earliest = Date.now()
      const run = await mustRun()
      expect(run.seed).toHaveLength(SEED_BYTES)
      expect(run.firstAtMs).toBeGreaterThanOrEqual(earliest)
      expect(run.firstAtMs).toBeLessThanOrEqual(Date.now())
      expect(await harness.other.reserve(request)).toEqual({ state: 'in-use' })
      await harness.one.finish(run, answer)
      const mustBeStored = async (store: IdempotencyStore) => {
        const stored = await store.reserve(request)
        if (stored.state !== 'stored') throw new Error(`the request is ${stored.state}`)
        expect(Buffer.from(stored.answer)).toEqual(answer)
      }
      await mustBeStored(harness.one)
      await mustBeStored(harness.other)
      await mustBeStored(await harness.reopen())
    })

    it('reports a different request with the same id, at any time', async () => {
      await begin()
      const reused = { state: 'reused', fingerprint: 'this' }
      const run = await mustRun()
      expect(await harness.other.reserve(another())).toEqual(reused)
      await harness.one.release(run, 'resumable')
      expect(await harness.other.reserve(another())).toEqual(reused)
      await harness.one.finish(await mustRun(), answer)
      expect(await harness.other.reserve(another())).toEqual(reused)
    })

    it('runs one of many concurrent repeats, and other requests at the same time', async () => {
      await begin()
      const reserved = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? harness.one : harness.other).reserve(request),
        ),
      )
      expect(reserved.filter(({ state }) => state === 'run')).toHaveLength(1)
      expect(reserved.filter(({ state }) => state === 'in-use')).toHaveLength(19)
      const unrelated = await mustRun(harness.one, { ...request, id: randomUUID() })
      const [run] = reserved.flatMap((each) => (each.state === 'run' ? [each.run] : []))
      expect(unrelated.seed).not.toEqual(run?.seed)
    })

    it('returns the same seed and time if a run was released to be resumed', async () => {
      await begin()
      const first = await mustRun()
      await harness.one.release(first, 'resumable')
      const second = await mustRun(harness.other)
      expect({ ...second, token: '' }).toEqual({ ...first, token: '' })
      expect(second.token).not.toBe(first.token)
    })

    it('forgets a run that was undone', async () => {
      await begin()
      const first = await mustRun()
      await harness.one.release(first, 'undone')
      const second = await mustRun(harness.other, another())
      expect(second.seed).not.toEqual(first.seed)
    })

    it('lets a request run again after its lease, and ignores the late run', async () => {
      await begin(SHORT_LEASE)
      const dead = await mustRun()
      const successor = await until('the lease to end', async () => {
        const reserved = await harness.other.reserve(request)
        return reserved.state === 'run' ? reserved.run : null
      })
      expect({ ...successor, token: '' }).toEqual({ ...dead, token: '' })
      await harness.one.finish(dead, Buffer.from('late'))
      await harness.one.release(dead, 'undone')
      await harness.other.renew(successor)
      expect(await harness.one.reserve(request)).toEqual({ state: 'in-use' })
      await harness.other.finish(successor, answer)
      await harness.one.renew(dead)
      expect(await harness.one.reserve(request)).toMatchObject({ state: 'stored' })
    })

    it('excludes other runs while the lease is renewed', async () => {
      await begin(SHORT_LEASE)
      const run = await mustRun()
      const endsAt = performance.now() + 2 * SHORT_LEASE.leaseMs
      await until('the lease to be over twice', async () => {
        await harness.one.renew(run)
        expect(await harness.other.reserve(request)).toEqual({ state: 'in-use' })
        return performance.now() > endsAt
      })
    })

    it('lets a request whose process was killed run again with the same seed', async () => {
      await begin(SHORT_LEASE)
      const dead = await mustRun()
      const store = await harness.reopen()
      const successor = await until('the lease to end', async () => {
        const reserved = await store.reserve(request)
        return reserved.state === 'run' ? reserved.run : null
      })
      expect({ ...successor, token: '' }).toEqual({ ...dead, token: '' })
    })

    it('deletes answers after their retention', async () => {
      await begin({ ...LASTING, keptMs: 300 })
      const first = await mustRun()
      const finishedAt = performance.now()
      await harness.one.finish(first, answer)
      const second = await until('the answer to be forgotten', async () => {
        const reserved = await harness.one.reserve(another())
        return reserved.state === 'run' ? reserved.run : null
      })
      expect(performance.now() - finishedAt).toBeGreaterThanOrEqual(290)
      expect(second.seed).not.toEqual(first.seed)
    })
  })
}
