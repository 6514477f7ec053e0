import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const MIB = 2 ** 20
const MODULE = new URL('./resident-memory.js', import.meta.url).href
const linux = process.platform === 'linux' ? it : it.skip

/** A script for a separate process, whose memory nothing else changes. It is busy for `busyMs` of every 20 ms. */
const scriptOf = (busyMs: number) => `
  import { anonymousBytes, releaseUnusedMemory } from ${JSON.stringify(MODULE)}
  const kept = []
  // 200 MiB of garbage in small blocks, with a few blocks in between that stay in use.
  function fragmentMemory() {
    const garbage = []
    for (let i = 0; i < 20_000; i += 1) {
      garbage.push(Buffer.allocUnsafeSlow(10 * 1024).fill(1))
      if (i % 100 === 0) kept.push(Buffer.allocUnsafeSlow(1024).fill(1))
    }
  }
  setInterval(() => {
    for (const endMs = performance.now() + ${busyMs}; performance.now() < endMs;) kept.length
  }, 20)
  const { promise, resolve } = Promise.withResolvers()
  await releaseUnusedMemory({ debug: ({ afterBytes }) => resolve(afterBytes) }, 100)
  // The first checks must come before the memory grows.
  await new Promise((done) => setTimeout(done, 2_000))
  const before = anonymousBytes()
  fragmentMemory()
  const busy = anonymousBytes()
  setTimeout(() => resolve(anonymousBytes()), 100_000)
  const after = await promise
  console.log(JSON.stringify({ taken: busy - before, left: after - before }))
  process.exit()
`

describe('memory that a process no longer uses', () => {
  for (const [when, busyMs] of [
    ['is idle', 0],
    ['is nearly idle', 4],
  ] as const) {
    linux(`is returned to the system when the process ${when}: garbage and freed blocks`, async () => {
      const args = ['--input-type=module', '-e', scriptOf(busyMs)]
      const { stdout } = await promisify(execFile)(process.execPath, args)
      const { taken, left } = JSON.parse(stdout) as { taken: number; left: number }
      expect(taken).toBeGreaterThan(150 * MIB)
      expect(left).toBeLessThan(50 * MIB)
    })
  }
})
