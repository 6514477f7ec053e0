import type { Progress } from './queries.js'
import { isCatchingUp } from './queries.js'
import { rememberingProgress } from './remembered-progress.js'

const PARTITION = { topic: 'inbox-events', partition: 3 } as const

describe('remembered progress', () => {
  let standing: Omit<Progress, 'topic' | 'partition'> | null
  let progress: ReturnType<typeof rememberingProgress>

  beforeEach(() => {
    standing = null
    progress = rememberingProgress({
      progress: (partition) => Promise.resolve(standing === null ? null : { ...partition, ...standing }),
    })
  })

  async function isBehindAt(position: number, { target = 0, begunAtMs = 1 } = {}): Promise<boolean> {
    standing = { position, target, begunAtMs }
    return isCatchingUp(await progress(PARTITION))
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
    expect(await progress(PARTITION)).toBeNull()
    expect(await isBehindAt(0)).toBe(true)
  })

  it('takes the target of views that were begun since for all that they lack: their log may have lost its end', async () => {
    await isBehindAt(100)
    expect(await isBehindAt(0, { target: 80, begunAtMs: 2 })).toBe(true)
    expect(await isBehindAt(80, { target: 80, begunAtMs: 2 })).toBe(false)
    expect(await isBehindAt(79, { target: 0, begunAtMs: 2 })).toBe(true)
  })
})
