import { mintId } from '#libs/domain/ids/mint.js'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import { InProcessSignals, type Signals } from '#libs/ports/signals/signals.js'
import { ConsistentViews, progressChannel, ViewsCatchingUpError } from './consistent-views.js'

const LONG_MS = 20_000
const partition: Partition = { topic: 'inbox-events', partition: 3 }

/** Views of one partition at a position that the test sets; null if they were never begun. */
function makeViews(position: number | null) {
  const views = {
    position,
    reads: 0,
    progress(requested: Partition) {
      views.reads += 1
      expect(requested).toMatchObject(partition)
      return Promise.resolve(
        views.position === null
          ? null
          : { ...partition, position: views.position, target: 0, logId: 'the-log', begunAtMs: 1 },
      )
    },
  }
  return views
}

type TestViews = ReturnType<typeof makeViews>

function viewsOver(queries: Pick<TestViews, 'progress'>, signals: Signals): ConsistentViews {
  const topology = () => Promise.reject(new Error('the log must not be read'))
  return new ConsistentViews(layoutOf({ partitionCount: () => 1, topology }), queries, signals)
}

describe('waiting for the views to pass a position', () => {
  const at = { ...partition, offset: 7 }
  let signals: InProcessSignals

  beforeEach(() => {
    signals = new InProcessSignals()
  })
  afterEach(() => signals.close())

  it('resolves at once if they are past it', async () => {
    const views = makeViews(8)
    expect(await viewsOver(views, signals).isVisibleWithin(at, 0)).toBe(true)
    expect(views.reads).toBe(1)
  })

  test.each([7, 6, null])('times out if they are at %p', async (position) => {
    expect(await viewsOver(makeViews(position), signals).isVisibleWithin(at, 20)).toBe(false)
  })

  it('resolves at the signal that they are past it, not at an earlier one', async () => {
    const views = makeViews(6)
    const passed = viewsOver(views, signals).isVisibleWithin(at, LONG_MS)
    let isOver = false
    void passed.then(() => (isOver = true))
    await new Promise(setImmediate)
    views.position = 7
    const readsBefore = views.reads
    signals.publish(progressChannel(partition))
    await new Promise(setImmediate)
    expect(views.reads).toBeGreaterThan(readsBefore)
    expect(isOver).toBe(false)
    views.position = 8
    signals.publish(progressChannel(partition))
    expect(await passed).toBe(true)
  })

  it('resolves if they advanced between the check and the subscription', async () => {
    const views = makeViews(6)
    const late = {
      publish: (channel: string) => signals.publish(channel),
      close: () => signals.close(),
      subscribe(channel: string, listener: (message: string) => void) {
        views.position = 8
        return signals.subscribe(channel, listener)
      },
    }
    // Without time to wait for a signal, only a check after the subscription can notice it.
    const passed = viewsOver(views, late).isVisibleWithin(at, 0)
    expect(await passed).toBe(true)
    expect(views.reads).toBe(2)
  })

  it('resolves soon even if the signal was lost', async () => {
    const views = makeViews(6)
    const passed = viewsOver(views, signals).isVisibleWithin(at, LONG_MS)
    await new Promise(setImmediate)
    views.position = 8
    expect(await passed).toBe(true)
  })

  it('unsubscribes when it has finished', async () => {
    let listening = 0
    const counted = {
      publish: (channel: string) => signals.publish(channel),
      close: () => signals.close(),
      async subscribe(channel: string, listener: (message: string) => void) {
        const end = await signals.subscribe(channel, listener)
        listening += 1
        return () => {
          listening -= 1
          end()
        }
      },
    }
    const views = makeViews(6)
    expect(await viewsOver(views, counted).isVisibleWithin(at, 10)).toBe(false)
    expect(listening).toBe(0)
    const passed = viewsOver(views, counted).isVisibleWithin(at, LONG_MS)
    await new Promise(setImmediate)
    expect(listening).toBe(1)
    views.position = 8
    signals.publish(progressChannel(partition))
    await passed
    expect(listening).toBe(0)
  })
})

describe('reading views that may be rebuilt at any moment', () => {
  const inboxId = mintId('inb')
  const signals = new InProcessSignals()
  afterAll(() => signals.close())

  /** Views that were begun at some time, at a position up to 2. */
  function makeRebuilt(first: { begunAtMs: number; position: number } | null) {
    const state = { now: first }
    const progress = ({ topic, partition }: Partition) =>
      Promise.resolve(state.now && { ...state.now, topic, partition, target: 2, logId: 'the-log' })
    return { state, views: viewsOver({ progress }, signals) }
  }
  const COMPLETE = { begunAtMs: 1, position: 2 }
  const REBUILDING = { begunAtMs: 5, position: 1 }
  const REBUILT = { begunAtMs: 5, position: 2 }

  it.each([null, REBUILDING])('refuses a list while they are %j', async (first) => {
    const { views } = makeRebuilt(first)
    let reads = 0
    const read = () => Promise.resolve((reads += 1))
    await expect(views.readComplete('inbox-events', read)).rejects.toBeInstanceOf(ViewsCatchingUpError)
    expect(reads).toBe(0)
  })

  it.each([null, REBUILDING, REBUILT])('refuses what was read if they became %j meanwhile', async (after) => {
    const { state, views } = makeRebuilt(COMPLETE)
    const read = () => Promise.resolve((state.now = after))
    await expect(views.readComplete(inboxId, read)).rejects.toBeInstanceOf(ViewsCatchingUpError)
  })

  it('finds a row while they are rebuilt', async () => {
    const { views } = makeRebuilt(REBUILDING)
    expect(await views.find(inboxId, () => Promise.resolve('row'))).toBe('row')
  })

  it('finds a row that was rebuilt after the first read', async () => {
    const { views } = makeRebuilt(REBUILT)
    let reads = 0
    expect(await views.find(inboxId, () => Promise.resolve((reads += 1) === 1 ? null : 'row'))).toBe('row')
  })

  it('returns no row only if they are complete', async () => {
    const { state, views } = makeRebuilt(COMPLETE)
    expect(await views.find(inboxId, () => Promise.resolve(null))).toBeNull()
    state.now = REBUILDING
    const found = views.find(inboxId, () => Promise.resolve(null))
    await expect(found).rejects.toBeInstanceOf(ViewsCatchingUpError)
  })
})
