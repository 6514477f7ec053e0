import { join } from 'node:path'
import { makeFolder } from '#test/harness/mayfly-with-clock.js'
import { describeIdempotencyStore } from '#libs/ports/idempotency/idempotency-store.contract.js'
import type { IdempotencyStore, Run } from '#libs/ports/idempotency/idempotency-store.js'
import { openLmdbIdempotency } from './lmdb-idempotency-store.js'

const fail = (error: unknown) => {
  throw error
}

describeIdempotencyStore('LMDB', async (times) => {
  const folder = await makeFolder()
  const options = {
    ...times,
    path: join(folder.path, 'records.mdb'),
    now: () => new Date(),
    onPruneError: fail,
  }
  let store = await openLmdbIdempotency(options)
  return {
    one: store,
    other: store,
    async reopen() {
      await store.close()
      store = await openLmdbIdempotency(options)
      return store
    },
    async close() {
      await store.close()
      await folder.remove()
    },
  }
})

describe('an idempotency store on LMDB', () => {
  it('removes expired records from the file when it is opened', async () => {
    const folder = await makeFolder()
    let nowMs = Date.now()
    const options = {
      path: join(folder.path, 'records.mdb'),
      leaseMs: 1_000,
      keptMs: 60_000,
      now: () => new Date(nowMs),
      onPruneError: fail,
    }
    const first = await openLmdbIdempotency(options)
    const reserve = (store: IdempotencyStore, id: string) => store.reserve({ id, fingerprint: 'this' })
    const runs: Run[] = []
    for (const id of ['old', 'older']) {
      const reserved = await reserve(first, id)
      if (reserved.state === 'run') runs.push(reserved.run)
    }
    for (const run of runs) await first.finish(run, Buffer.from('answer'))
    nowMs += 30_000
    await reserve(first, 'young')
    expect(first.count()).toBe(3)
    nowMs += 30_000
    await first.close()
    const second = await openLmdbIdempotency(options)
    await second.close()
    const third = await openLmdbIdempotency(options)
    expect(third.count()).toBe(1)
    await third.close()
    await folder.remove()
  })
})
