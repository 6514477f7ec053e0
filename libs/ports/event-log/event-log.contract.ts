import { describeAppending } from './appending.contract.js'
import { describeCommitting } from './committing.contract.js'
import { describeConsuming } from './consuming.contract.js'
import type { EventLogHarness } from './event-log-harness.contract.js'
import { describeRetrying } from './retrying.contract.js'

export function describeEventLog(name: string, make: () => Promise<EventLogHarness>): void {
  describe(`${name} as an event log`, () => {
    let harness: EventLogHarness

    beforeEach(async () => {
      harness = await make()
    })
    afterEach(() => harness.close())

    it('has an id that no other log has', async () => {
      const other = await make()
      try {
        const [one, two] = await Promise.all([harness, other].map(({ log }) => log.topology('inbox-events')))
        expect(one?.logId).toEqual(expect.stringMatching(/./))
        expect(one?.logId).not.toBe(two?.logId)
        expect((await harness.log.topology('account-events')).logId).toBe(one?.logId)
      } finally {
        await other.close()
      }
    })

    describe('appending and reading', () => describeAppending(() => harness))
    describe('consuming', () => describeConsuming(() => harness))
    describe('committing', () => describeCommitting(() => harness))
    describe('retrying', () => describeRetrying(() => harness))
  })
}
