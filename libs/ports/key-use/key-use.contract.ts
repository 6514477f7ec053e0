import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { until } from '#test/harness/until.js'
import { KeyUse, type KeyUseStore } from './key-use.js'

export interface KeyUseHarness {
  store: KeyUseStore
  /** The same store as another process sees it. */
  other: KeyUseStore
  close(): Promise<void>
}

const [one, two, never] = [1, 2, 3].map((n) => idFromBytes('key', Buffer.alloc(16, n)))
const minute = (minutes: number) => new Date(Date.UTC(2026, 0, 1) + minutes * 60_000)
const fail = (error: unknown) => {
  throw error
}
const NEVER_MS = 3_600_000

export function describeKeyUse(name: string, make: () => Promise<KeyUseHarness> | KeyUseHarness): void {
  describe(`${name} as key use`, () => {
    let harness: KeyUseHarness

    if (one === undefined || two === undefined || never === undefined) throw new Error('no keys')

    beforeEach(async () => {
      harness = await make()
    })
    afterEach(() => harness.close())

    it('shows a use at once in the process that noticed it, and to others once it is stored', async () => {
      const use = new KeyUse(harness.store, fail, 1)
      use.touch(one, minute(1))
      expect(await use.lastUsedAt([one, never])).toEqual(new Map([[one, minute(1)]]))
      await until('the use to be stored', async () => (await harness.other.get([one])).size === 1)
      expect(await harness.other.get([one, never])).toEqual(new Map([[one, minute(1)]]))
      await use.close()
      expect(await use.lastUsedAt([one])).toEqual(new Map([[one, minute(1)]]))
    })

    it('stores pending uses when it is closed', async () => {
      const use = new KeyUse(harness.store, fail, NEVER_MS)
      use.touch(one, minute(1))
      use.touch(two, minute(2))
      await use.close()
      expect(await harness.other.get([one, two])).toEqual(
        new Map([
          [one, minute(1)],
          [two, minute(2)],
        ]),
      )
    })

    it('keeps the latest use, whatever the order of writes', async () => {
      const uses = [harness.store, harness.other].map((store) => new KeyUse(store, fail, NEVER_MS))
      const [here, there] = uses
      here?.touch(one, minute(5))
      here?.touch(one, minute(4))
      there?.touch(one, minute(3))
      expect(await here?.lastUsedAt([one])).toEqual(new Map([[one, minute(5)]]))
      for (const use of uses) await use.close()
      expect(await harness.store.get([one])).toEqual(new Map([[one, minute(5)]]))
      await harness.other.put(new Map([[one, minute(6)]]))
      expect(await harness.store.get([one])).toEqual(new Map([[one, minute(6)]]))
    })

    it('returns nothing for no keys', async () => {
      await harness.store.put(new Map())
      expect(await harness.store.get([])).toEqual(new Map())
    })
  })
}
