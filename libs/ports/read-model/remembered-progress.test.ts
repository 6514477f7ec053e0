import type { LogLayout, Topology } from '#libs/ports/event-log/event-log.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'
import { isCatchingUp, type Progress } from './queries.js'
import { rememberProgress, type RememberedProgress } from './remembered-progress.js'

const PARTITION = { topic: 'inbox-events', partition: 3 } as const

/** A log whose end a test sets; null: out of reach. */
class Log implements LogLayout {
  readonly logId = 'the-log'
  end: number | null = 0

  partitionCount(): number {
    return PARTITION.partition + 1
  }

  topology(topic: TopicName): Promise<Topology> {
    if (this.end === null) return Promise.reject(new Error('the log is out of reach'))
    const partitions = [{ ...PARTITION, topic, first: 0, end: this.end }]
    return Promise.resolve({ logId: this.logId, partitions })
  }
}

describe('remembered progress', () => {
  let standing: Omit<Progress, 'topic' | 'partition' | 'logId'> | null
  let logId: string
  let log: Log
  let remembered: RememberedProgress

  beforeEach(() => {
    standing = null
    log = new Log()
    logId = log.logId
    const progress = (partition: typeof PARTITION) =>
      Promise.resolve(standing === null ? null : { ...partition, logId, ...standing })
    remembered = rememberProgress({ progress: () => progress(PARTITION) }, log)
  })

  async function isBehindAt(position: number, { target = 0, begunAtMs = 1 } = {}): Promise<boolean> {
    standing = { position, target, begunAtMs }
    return isCatchingUp(await remembered.progress(PARTITION))
  }

  it('counts views that went back as catching up until they are where they were', async () => {
    expect(await isBehindAt(10)).toBe(false)
    expect(await isBehindAt(7)).toBe(true)
    expect(await isBehindAt(9)).toBe(true)
    expect(await isBehindAt(10)).toBe(false)
    expect(await isBehindAt(12)).toBe(false)
    expect(await isBehindAt(12, { target: 13 })).toBe(true)
  })

  it('does so of a copy from before they were begun', async () => {
    expect(await isBehindAt(10, { begunAtMs: 2 })).toBe(false)
    expect(await isBehindAt(7, { begunAtMs: 1 })).toBe(true)
  })

  it('says null of views that are lost, and knows afterwards where they were', async () => {
    await isBehindAt(5)
    standing = null
    expect(await remembered.progress(PARTITION)).toBeNull()
    expect(await isBehindAt(0)).toBe(true)
  })

  it('takes views of another log for views that are not begun', async () => {
    logId = 'another-log'
    await isBehindAt(5)
    expect(await remembered.progress(PARTITION)).toBeNull()
    logId = log.logId
    expect(await isBehindAt(3)).toBe(false)
  })

  it('takes the target of views that were begun since for all that they lack: their log may have lost its end', async () => {
    await isBehindAt(100)
    expect(await isBehindAt(0, { target: 80, begunAtMs: 2 })).toBe(true)
    expect(await isBehindAt(80, { target: 80, begunAtMs: 2 })).toBe(false)
    expect(await isBehindAt(79, { target: 0, begunAtMs: 2 })).toBe(true)
  })

  it('counts views that are in doubt as catching up until they are where the log has ended since', async () => {
    log.end = 20
    expect(await isBehindAt(10)).toBe(false)
    remembered.doubt()
    expect(await isBehindAt(10)).toBe(true)
    expect(await isBehindAt(19)).toBe(true)
    expect(await isBehindAt(20)).toBe(false)
    log.end = null
    remembered.doubt()
    expect(await isBehindAt(30)).toBe(true)
    log.end = 31
    expect(await isBehindAt(30)).toBe(true)
    expect(await isBehindAt(31)).toBe(false)
  })

  it('does so of views that it had not seen before the doubt', async () => {
    log.end = 20
    remembered.doubt()
    expect(await isBehindAt(10)).toBe(true)
    expect(await isBehindAt(10)).toBe(true)
    expect(await isBehindAt(20)).toBe(false)
  })
})
