import fc from 'fast-check'
import type { FuzzSession } from './smtp-session.js'
import { openSmtpTarget, type SmtpTarget } from './smtp-target.js'

/*
 * A short run of `npm run fuzz`, and the sessions that it has found. Findings that depend on packet boundaries are in
 * apps/smtp/envelopes.test.ts.
 */

const RUNS = 60
const SEED = 20_261_121

function session(clear: string, more: Partial<FuzzSession> = {}): FuzzSession {
  return { clear, tls: null, cuts: [], isSlow: false, leaves: 'after-replies', ...more }
}

const FOUND = [
  {
    name: 'BDAT with a NUL: its bytes were parsed as commands',
    sessions: [session('EHLO client.test\r\nBDAT 3 LAST\0\r\nMAIL FROM:<a@x.test>\r\n')],
  },
]

describe('the SMTP server, fuzzed,', () => {
  let target: SmtpTarget

  beforeAll(async () => {
    target = await openSmtpTarget()
  })
  afterAll(() => target.close())

  it.each(FOUND)('keeps every accepted mail: $name', async ({ sessions }) => {
    await fc.assert(target.property, { examples: [[sessions]], numRuns: 1 })
  })

  it('keeps every accepted mail in random sessions', async () => {
    await fc.assert(target.property, { seed: SEED, numRuns: RUNS })
    await target.settle()
  })
})
