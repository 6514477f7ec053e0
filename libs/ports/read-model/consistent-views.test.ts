import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import { type Signals, InProcessSignals } from '#libs/ports/signals/signals.js'
import { ConsistentViews, movedChannel, ViewsCatchingUpError } from './consistent-views.js'

const LONG_MS = 20_000
const partition: Partition = { topic: 'inbox-events', partition: 3 }

/** Views of one partition that stand where the test says, null before they are begun. */
function makeViews(position: number | null) {
  const views = {
    position,
    looks: 0,
    progress(asked: Partition) {
      views.looks += 1
      expect(asked).toMatchObject(partition)
      return Promise.resolve(
        views.position === null
          ? null
          : { ...partition, position: views.position, target: 0, logId: 'the-log', begunAtMs: 1 },
      )
    },
  }
  return views
}

type StandingViews = ReturnType<typeof makeViews>

function viewsOver(queries: Pick<StandingViews, 'progress'>, signals: Signals): ConsistentViews {
  const topology = () => Promise.reject(new Error('the log is not asked'))
  return new ConsistentViews(layoutOf({ partitionCount: () => 1, topology }), queries, signals)
}

describe('waiting for the views to pass a position', () => {
  const at = { ...partition, offset: 7 }
  let signals: InProcessSignals

  beforeEach(() => {
    signals = new InProcessSignals()
  })
  afterEach(() => signals.close())

  it('is over at once where they are past it', async () => {
    const views = makeViews(8)
    expect(await viewsOver(views, signals).isVisibleWithin(at, 0)).toBe(true)
    expect(views.looks).toBe(1)
  })

  test.each([7, 6, null])('is in vain where they stand at %p until the time is over', async (position) => {
    expect(await viewsOver(makeViews(position), signals).isVisibleWithin(at, 20)).toBe(false)
  })

  it('is over with the signal that they have moved past it, not with one before', async () => {
    const views = makeViews(6)
    const passed = viewsOver(views, signals).isVisibleWithin(at, LONG_MS)
    let isOver = false
    void passed.then(() => (isOver = true))
    await new Promise(setImmediate)
    views.position = 7
    const looksBefore = views.looks
    signals.publish(movedChannel(partition))
    await new Promise(setImmediate)
    expect(views.looks).toBeGreaterThan(looksBefore)
    expect(isOver).toBe(false)
    views.position = 8
    signals.publish(movedChannel(partition))
    expect(await passed).toBe(true)
  })

  it('is over where they moved between the look and the subscription', async () => {
    const views = makeViews(6)
    const late = {
      publish: (channel: string) => signals.publish(channel),
      close: () => signals.close(),
      subscribe(channel: string, listener: () => void) {
        views.position = 8
        return signals.subscribe(channel, listener)
      },
    }
    // No time to wait for a signal: only a look behind the subscription can tell.
    const looked = viewsOver(views, late).isVisibleWithin(at, 0)
    expect(await looked).toBe(true)
    expect(views.looks).toBe(2)
  })

  it('is over soon also where the signal was lost', async () => {
    const views = makeViews(6)
    const passed = viewsOver(views, signals).isVisibleWithin(at, LONG_MS)
    await new Promise(setImmediate)
    views.position = 8
    expect(await passed).toBe(true)
  })

  it('listens no longer than it waits', async () => {
    let listening = 0
    const counted = {
      publish: (channel: string) => signals.publish(channel),
      close: () => signals.close(),
      async subscribe(channel: string, listener: () => void) {
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
    signals.publish(movedChannel(partition))
    await passed
    expect(listening).toBe(0)
  })
})

describe('reading views that may be rebuilt at any moment', () => {
  const inboxId = mintId('inb')
  const signals = new InProcessSignals()
  afterAll(() => signals.close())

  /** Views that were begun at a moment and have come to a position of two. */
  function makeRebuilt(first: { begunAtMs: number; position: number } | null) {
    const stand = { now: first }
    const progress = ({ topic, partition }: Partition) =>
      Promise.resolve(stand.now && { ...stand.now, topic, partition, target: 2, logId: 'the-log' })
    return { stand, views: viewsOver({ progress }, signals) }
  }
  const COMPLETE = { begunAtMs: 1, position: 2 }
  const REBUILDING = { begunAtMs: 5, position: 1 }
  const REBUILT = { begunAtMs: 5, position: 2 }

  it.each([null, REBUILDING])('refuses a list while they are %j', async (stand) => {
    const { views } = makeRebuilt(stand)
    let reads = 0
    const read = () => Promise.resolve((reads += 1))
    await expect(views.readComplete('inbox-events', read)).rejects.toBeInstanceOf(ViewsCatchingUpError)
    expect(reads).toBe(0)
  })

  it.each([null, REBUILDING, REBUILT])('refuses what was read while they became %j', async (after) => {
    const { stand, views } = makeRebuilt(COMPLETE)
    const read = () => Promise.resolve((stand.now = after))
    await expect(views.readComplete(inboxId, read)).rejects.toBeInstanceOf(ViewsCatchingUpError)
  })

  it('finds a row also while they are rebuilt', async () => {
    const { views } = makeRebuilt(REBUILDING)
    expect(await views.find(inboxId, () => Promise.resolve('row'))).toBe('row')
  })

  it('finds a row that was rebuilt after the first look', async () => {
    const { views } = makeRebuilt(REBUILT)
    let looks = 0
    expect(await views.find(inboxId, () => Promise.resolve((looks += 1) === 1 ? null : 'row'))).toBe('row')
  })

  it('says that there is no row only if they are complete', async () => {
    const { stand, views } = makeRebuilt(COMPLETE)
    expect(await views.find(inboxId, () => Promise.resolve(null))).toBeNull()
    stand.now = REBUILDING
    const found = views.find(inboxId, () => Promise.resolve(null))
    await expect(found).rejects.toBeInstanceOf(ViewsCatchingUpError)
  })
})
