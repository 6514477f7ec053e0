import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const MIB = 2 ** 20
const MODULE = new URL('./idle-memory.js', import.meta.url).href
const linux = process.platform === 'linux' ? it : it.skip

/** A process of its own, whose memory nothing else takes or gives back. */
const SCRIPT = `
  import { anonymousBytes, releaseMemoryWhenIdle } from ${JSON.stringify(MODULE)}
  const kept = []
  // 200 MiB of garbage in small blocks, and between them few that stay in use.
  function fragmentMemory() {
    const garbage = []
    for (let i = 0; i < 20_000; i += 1) {
      garbage.push(Buffer.allocUnsafeSlow(10 * 1024).fill(1))
      if (i % 100 === 0) kept.push(Buffer.allocUnsafeSlow(1024).fill(1))
    }
  }
  const before = anonymousBytes()
  fragmentMemory()
  const busy = anonymousBytes()
  const after = await new Promise((resolve) => {
    void releaseMemoryWhenIdle({ debug: ({ afterBytes }) => resolve(afterBytes) }, 100)
    setTimeout(() => resolve(anonymousBytes()), 60_000).unref()
    setInterval(() => kept.length, 10_000)
  })
  console.log(JSON.stringify({ taken: busy - before, left: after - before }))
  process.exit()
`

describe('the memory of an idle process', () => {
  linux('is given back to the system, garbage and freed blocks alike', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', SCRIPT])
    const { taken, left } = JSON.parse(stdout) as { taken: number; left: number }
    expect(taken).toBeGreaterThan(150 * MIB)
    expect(left).toBeLessThan(50 * MIB)
  })
})
