import type { Partition, Topology } from '#libs/event-log/event-log.js'
import type { TopicName } from '#libs/event-log/topics.js'
import { isCatchingUp, type Progress } from './queries.js'
import { rememberingProgress } from './remembered-progress.js'

const PARTITION = { topic: 'inbox-events', partition: 3 } as const

/** Views whose position a test sets. */
class Views {
  readonly name = 'the views'
  standing: Omit<Progress, 'topic' | 'partition'> | null = null

  progress(partition: Partition): Promise<Progress | null> {
    return Promise.resolve(this.standing === null ? null : { ...partition, ...this.standing })
  }

  nameOfAll(): string {
    return this.name
  }
}

/** A log whose end a test sets; null: out of reach. */
class Log {
  end: number | null = 0

  topology(topic: TopicName): Promise<Topology> {
    if (this.end === null) return Promise.reject(new Error('the log is out of reach'))
    const partitions = [{ ...PARTITION, topic, first: 0, end: this.end }]
    return Promise.resolve({ logId: 'log', partitions })
  }
}

describe('remembered progress', () => {
  it('counts views that went back as catching up until they are where they were', async () => {
    const views = new Views()
    const { queries: remembering } = rememberingProgress(views, new Log())
    const isBehindAt = async (position: number, target = 0) => {
      views.standing = { position, target }
      return isCatchingUp(await remembering.progress(PARTITION))
    }
    expect(await isBehindAt(10)).toBe(false)
    expect(await isBehindAt(7)).toBe(true)
    expect(await isBehindAt(9)).toBe(true)
    expect(await isBehindAt(10)).toBe(false)
    expect(await isBehindAt(12)).toBe(false)
    expect(await isBehindAt(12, 13)).toBe(true)
  })

  it('says null of views that are not begun, and knows afterwards where they were', async () => {
    const views = new Views()
    const { queries: remembering } = rememberingProgress(views, new Log())
    views.standing = { position: 5, target: 0 }
    await remembering.progress(PARTITION)
    views.standing = null
    expect(await remembering.progress(PARTITION)).toBeNull()
    views.standing = { position: 0, target: 2 }
    expect(await remembering.progress(PARTITION)).toMatchObject({ position: 0, target: 5 })
  })

  it('counts views that are in doubt as catching up until they are where the log has ended since', async () => {
    const [views, log] = [new Views(), new Log()]
    const { queries, doubt } = rememberingProgress(views, log)
    const isBehindAt = async (position: number) => {
      views.standing = { position, target: 0 }
      return isCatchingUp(await queries.progress(PARTITION))
    }
    log.end = 20
    expect(await isBehindAt(10)).toBe(false)
    doubt()
    expect(await isBehindAt(10)).toBe(true)
    expect(await isBehindAt(19)).toBe(true)
    expect(await isBehindAt(20)).toBe(false)
    log.end = null
    doubt()
    expect(await isBehindAt(30)).toBe(true)
    log.end = 31
    expect(await isBehindAt(30)).toBe(true)
    expect(await isBehindAt(31)).toBe(false)
  })

  it('leaves everything else to the queries', () => {
    expect(rememberingProgress(new Views(), new Log()).queries.nameOfAll()).toBe('the views')
  })
})
