import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { openSmtpTarget } from './smtp-target.js'
import type { FuzzTargets } from './target.js'

/*
 * Fuzzes what takes input from outside, for as long as it is told to. Every batch has a seed of its own, which is
 * printed: `--seed` begins there again. It ends with 1 at the first input for which something does not hold.
 */

const TARGETS: FuzzTargets = { smtp: openSmtpTarget }
const RUNS_OF_BATCH = 200
/** How long a smaller input is looked for that fails too. */
const SHRINK_WITHIN_MS = 60_000
const USAGE = `npm run fuzz -- [options]
  --seconds n   how long each target is fuzzed (60)
  --only a,b    these targets alone: ${Object.keys(TARGETS).join(', ')}
  --seed n      the first batch's seed; the time where it is not given
`

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, only: { type: 'string' }, seed: { type: 'string' } },
})
const seconds = wholeNumber(values.seconds ?? '60')
const firstSeed = wholeNumber(values.seed ?? String(Date.now() % 2 ** 31))
const names = values.only?.split(',') ?? Object.keys(TARGETS)

for (const name of names) await fuzz(name)

async function fuzz(name: string): Promise<void> {
  const open = TARGETS[name]
  if (open === undefined) throw new Error(`there is no target "${name}"\n\n${USAGE}`)
  const target = await open()
  const endsAtMs = performance.now() + seconds * 1_000
  try {
    for (let seed = firstSeed, runs = 0; performance.now() < endsAtMs; seed += 1) {
      const { property } = target
      const result = await fc.check(property, { seed, numRuns: RUNS_OF_BATCH, endOnFailure: true })
      if (result.failed) {
        process.stderr.write(`${name}: seed ${seed}: ${String(result.errorInstance)}\n`)
        const options = {
          seed,
          path: result.counterexamplePath ?? '0',
          interruptAfterTimeLimit: SHRINK_WITHIN_MS,
        }
        const shrunk = await fc.check(property, options)
        process.stderr.write(`${await fc.asyncDefaultReportMessage(shrunk.failed ? shrunk : result)}\n`)
        process.exitCode = 1
        return
      }
      await target.settle()
      runs += result.numRuns
      const mib = Math.round(process.memoryUsage().rss / 1024 / 1024)
      process.stderr.write(`${name}: seed ${seed}, ${runs} runs, ${mib} MiB\n`)
    }
  } finally {
    await target.close()
  }
}

function wholeNumber(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new Error(`"${text}" is no whole number\n\n${USAGE}`)
  return Number(text)
}
