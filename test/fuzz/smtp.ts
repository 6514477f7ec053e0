import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { openSmtpTarget } from './smtp-target.js'
import type { FuzzTarget } from './target.js'

const RUNS_OF_BATCH = 200
/** Time to search for a smaller input that fails too. */
const SHRINK_WITHIN_MS = 60_000

/** Fuzzes SMTP with batches of sessions, each with its own seed, until the first failure. */
export const fuzzSmtp: FuzzTarget = async ({ endsAtMs, mostInputs = Infinity, seed, folder, say }) => {
  const target = await openSmtpTarget()
  try {
    let runs = 0
    for (let next = seed; Date.now() < endsAtMs && runs < mostInputs; next += 1) {
      const { property } = target
      const result = await fc.check(property, { seed: next, numRuns: RUNS_OF_BATCH, endOnFailure: true })
      if (result.failed) {
        const path = result.counterexamplePath ?? '0'
        const shrunk = await fc.check(property, {
          seed: next,
          path,
          interruptAfterTimeLimit: SHRINK_WITHIN_MS,
        })
        const report = await fc.asyncDefaultReportMessage(shrunk.failed ? shrunk : result)
        const name = join(folder, `smtp-${next}.txt`)
        await mkdir(folder, { recursive: true })
        await writeFile(name, report)
        say(`failed, kept as ${name}: seed ${next}: ${report.slice(0, 2_000)}`)
        return 1
      }
      await target.settle()
      runs += result.numRuns
      say(`seed ${next}, ${runs} runs, ${Math.round(process.memoryUsage().rss / 1024 / 1024)} MiB`)
    }
    return 0
  } finally {
    await target.close()
  }
}
