import type { Partition } from '#libs/ports/event-log/event-log.js'
import { InProcessSignals } from '#libs/engines/embedded/signals/in-process-signals.js'
import { movedChannel, Watermark } from './watermark.js'

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

describe('waiting for the views to pass a position', () => {
  const at = { ...partition, offset: 7 }
  let signals: InProcessSignals

  beforeEach(() => {
    signals = new InProcessSignals()
  })
  afterEach(() => signals.close())

  it('is over at once where they are past it', async () => {
    const views = makeViews(8)
    expect(await new Watermark(views, signals).hasPassed(at, 0)).toBe(true)
    expect(views.looks).toBe(1)
  })

  test.each([7, 6, null])('is in vain where they stand at %p until the time is over', async (position) => {
    expect(await new Watermark(makeViews(position), signals).hasPassed(at, 20)).toBe(false)
  })

  it('is over with the signal that they have moved past it, not with one before', async () => {
    const views = makeViews(6)
    const passed = new Watermark(views, signals).hasPassed(at, LONG_MS)
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
    const looked = new Watermark(views, late).hasPassed(at, 0)
    expect(await looked).toBe(true)
    expect(views.looks).toBe(2)
  })

  it('is over soon also where the signal was lost', async () => {
    const views = makeViews(6)
    const passed = new Watermark(views, signals).hasPassed(at, LONG_MS)
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
    expect(await new Watermark(views, counted).hasPassed(at, 10)).toBe(false)
    expect(listening).toBe(0)
    const passed = new Watermark(views, counted).hasPassed(at, LONG_MS)
    await new Promise(setImmediate)
    expect(listening).toBe(1)
    views.position = 8
    signals.publish(movedChannel(partition))
    await passed
    expect(listening).toBe(0)
  })
})
