import type { Partition } from '#libs/event-log/event-log.js'
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

describe('remembered progress', () => {
  it('counts views that went back as catching up until they are where they were', async () => {
    const views = new Views()
    const remembering = rememberingProgress(views)
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
    const remembering = rememberingProgress(views)
    views.standing = { position: 5, target: 0 }
    await remembering.progress(PARTITION)
    views.standing = null
    expect(await remembering.progress(PARTITION)).toBeNull()
    views.standing = { position: 0, target: 2 }
    expect(await remembering.progress(PARTITION)).toMatchObject({ position: 0, target: 5 })
  })

  it('leaves everything else to the queries', () => {
    expect(rememberingProgress(new Views()).nameOfAll()).toBe('the views')
  })
})
