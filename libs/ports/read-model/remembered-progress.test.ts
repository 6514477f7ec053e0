import type { LogLayout, Topology } from '#libs/ports/event-log/event-log.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'
import { isCatchingUp, type Progress } from './view-store.js'
import { rememberProgress } from './remembered-progress.js'

const PARTITION = { topic: 'inbox-events', partition: 3 } as const

/** A log whose end the test sets; null if it is unavailable. */
class Log implements LogLayout {
  readonly logId = 'the-log'
  end: number | null = 0

  partitionCount(): number {
    return PARTITION.partition + 1
  }

  topology(topic: TopicName): Promise<Topology> {
    if (this.end === null) return Promise.reject(new Error('the log is unavailable'))
    const partitions = [{ ...PARTITION, topic, first: 0, end: this.end }]
    return Promise.resolve({ logId: this.logId, partitions })
  }
}

describe('remembered progress', () => {
  let state: Omit<Progress, 'topic' | 'partition' | 'logId'> | null
  let logId: string
  let log: Log
  let remembered: ReturnType<typeof rememberProgress>

  beforeEach(() => {
    state = null
    log = new Log()
    logId = log.logId
    const progress = (partition: typeof PARTITION) =>
      Promise.resolve(state === null ? null : { ...partition, logId, ...state })
    remembered = rememberProgress({ progress: () => progress(PARTITION) }, log)
  })

  async function isBehindAt(position: number, { target = 0, begunAtMs = 1 } = {}): Promise<boolean> {
    state = { position, target, begunAtMs }
    return isCatchingUp(await remembered.progress(PARTITION))
  }

  it('counts views that were set back as catching up until they reach their previous position', async () => {
    expect(await isBehindAt(10)).toBe(false)
    expect(await isBehindAt(7)).toBe(true)
    expect(await isBehindAt(9)).toBe(true)
    expect(await isBehindAt(10)).toBe(false)
    expect(await isBehindAt(12)).toBe(false)
    expect(await isBehindAt(12, { target: 13 })).toBe(true)
  })

  it('does so for a copy from before they were begun', async () => {
    expect(await isBehindAt(10, { begunAtMs: 2 })).toBe(false)
    expect(await isBehindAt(7, { begunAtMs: 1 })).toBe(true)
  })

  it('returns null for lost views, and remembers their position', async () => {
    await isBehindAt(5)
    state = null
    expect(await remembered.progress(PARTITION)).toBeNull()
    expect(await isBehindAt(0)).toBe(true)
  })

  it('treats views of another log as never begun', async () => {
    logId = 'another-log'
    await isBehindAt(5)
    expect(await remembered.progress(PARTITION)).toBeNull()
    logId = log.logId
    expect(await isBehindAt(3)).toBe(false)
  })

  it('uses only the target of views that were begun since, as their log may have been truncated', async () => {
    await isBehindAt(100)
    expect(await isBehindAt(0, { target: 80, begunAtMs: 2 })).toBe(true)
    expect(await isBehindAt(80, { target: 80, begunAtMs: 2 })).toBe(false)
    expect(await isBehindAt(79, { target: 0, begunAtMs: 2 })).toBe(true)
  })

  it('counts invalidated views as catching up until they reach the log’s end', async () => {
    log.end = 20
    expect(await isBehindAt(10)).toBe(false)
    remembered.invalidate()
    expect(await isBehindAt(10)).toBe(true)
    expect(await isBehindAt(19)).toBe(true)
    expect(await isBehindAt(20)).toBe(false)
    log.end = null
    remembered.invalidate()
    expect(await isBehindAt(30)).toBe(true)
    log.end = 31
    expect(await isBehindAt(30)).toBe(true)
    expect(await isBehindAt(31)).toBe(false)
  })

  it('does so for views that it had not seen before', async () => {
    log.end = 20
    remembered.invalidate()
    expect(await isBehindAt(10)).toBe(true)
    expect(await isBehindAt(10)).toBe(true)
    expect(await isBehindAt(20)).toBe(false)
  })
})
