import pino from 'pino'
import { until } from '#test/harness/until.js'
import { anonymousBytes, releaseMemoryWhenIdle } from './idle-memory.js'

const MIB = 2 ** 20
const linux = process.platform === 'linux' ? it : it.skip

describe('the memory of an idle process', () => {
  linux('is given back to the system, garbage and freed blocks alike', async () => {
    const beforeBytes = anonymousBytes() ?? NaN
    fragmentMemory()
    const busyBytes = anonymousBytes() ?? NaN
    expect(busyBytes - beforeBytes).toBeGreaterThan(150 * MIB)
    const stop = await releaseMemoryWhenIdle(pino({ enabled: false }), 100)
    await until('the memory to be given back', () => (anonymousBytes() ?? NaN) - beforeBytes < 75 * MIB)
    stop()
  })
})

/** Leaves 200 MiB of garbage in small blocks, and between them few that stay in use. */
const kept: Buffer[] = []
function fragmentMemory(): void {
  const garbage: Buffer[] = []
  for (let i = 0; i < 20_000; i += 1) {
    garbage.push(Buffer.allocUnsafeSlow(10 * 1024).fill(1))
    if (i % 100 === 0) kept.push(Buffer.allocUnsafeSlow(1024).fill(1))
  }
}
