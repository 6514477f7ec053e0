import fc from 'fast-check'
import type { FuzzSession } from './smtp-session.js'
import { openSmtpTarget, type SmtpTarget } from './smtp-target.js'

/*
 * A short run of what `npm run fuzz` does for as long as one likes. What that found stands here for good, or, where it
 * hangs on where the bytes are cut, in apps/smtp/envelopes.test.ts.
 */

const RUNS = 60
const SEED = 20_261_121

function session(clear: string, more: Partial<FuzzSession> = {}): FuzzSession {
  return { clear, tls: null, cuts: [], isSlow: false, leaves: 'behind', ...more }
}

const FOUND = [
  {
    name: 'BDAT with a NUL: its bytes were taken for commands',
    sessions: [session('EHLO client.test\r\nBDAT 3 LAST\0\r\nMAIL FROM:<a@x.test>\r\n')],
  },
]

describe('the SMTP edge, fuzzed,', () => {
  let target: SmtpTarget

  beforeAll(async () => {
    target = await openSmtpTarget()
  })
  afterAll(() => target.close())

  it.each(FOUND)('keeps what it promises: $name', async ({ sessions }) => {
    await fc.assert(target.property, { examples: [[sessions]], numRuns: 1 })
  })

  it('keeps what it promises, whatever comes', async () => {
    await fc.assert(target.property, { seed: SEED, numRuns: RUNS })
    await target.settle()
  })
})
