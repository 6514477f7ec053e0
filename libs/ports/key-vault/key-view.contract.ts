import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { KeyStatement, KeyStep, KeyView, ViewStanding } from './key-view.js'
import type { WrappedKey } from './master-key.js'

export interface KeyViewHarness {
  view: KeyView
  close(): Promise<void>
}

const PARTITION = 3
const LOG = 'the-log'

const wrapped = (text: string): WrappedKey => ({ masterKeyId: 'a-master', wrapped: Buffer.from(text) })
const tells = (inboxId: InboxId, text: string): KeyStatement => ({
  inboxId,
  says: { state: 'wrapped', key: wrapped(text) },
})
const tellsForgotten = (inboxId: InboxId): KeyStatement => ({ inboxId, says: { state: 'forgotten' } })

export function describeKeyView(name: string, make: () => Promise<KeyViewHarness>): void {
  describe(`${name} as a view of inbox keys`, () => {
    let harness: KeyViewHarness
    let view: KeyView
    let inboxId: InboxId

    beforeEach(async () => {
      harness = await make()
      view = harness.view
      inboxId = mintId('inb')
    })
    afterEach(() => harness.close())

    const entryOf = async (id = inboxId) => (await view.find(PARTITION, [id])).entries[0]
    const standing = async () => (await view.find(PARTITION, [])).standing
    const begin = (next: number, logId = LOG, seen: ViewStanding | null = null) =>
      view.begin(PARTITION, { logId, next }, seen)
    const apply = (from: number, to: number, statements: KeyStatement[], more: Partial<KeyStep> = {}) =>
      view.apply({
        partition: PARTITION,
        logId: LOG,
        from,
        to,
        statements,
        masterKeyId: null,
        settled: new Set(),
        ...more,
      })

    it('knows nothing and stands nowhere at first', async () => {
      const found = await view.find(PARTITION, [inboxId, mintId('inb')])
      expect(found).toEqual({ standing: null, entries: [{ state: 'absent' }, { state: 'absent' }] })
    })

    it('gives an entry for each id, in order, of its own partition', async () => {
      const [unknown, forgotten] = [mintId('inb'), mintId('inb')]
      await view.take(PARTITION, inboxId, wrapped('one'))
      await view.forget(PARTITION, [forgotten])
      const { entries } = await view.find(PARTITION, [forgotten, unknown, inboxId])
      expect(entries).toEqual([
        { state: 'forgotten' },
        { state: 'absent' },
        { state: 'wrapped', key: wrapped('one') },
      ])
      const { entries: elsewhere } = await view.find(PARTITION + 1, [inboxId])
      expect(elsewhere).toEqual([{ state: 'absent' }])
    })

    it('keeps the key that was taken into use first, and says that another was wanted', async () => {
      const first = await view.take(PARTITION, inboxId, wrapped('one'))
      expect(first).toEqual({ stands: { state: 'wrapped', key: wrapped('one') }, wasContested: false })
      expect(await view.take(PARTITION, inboxId, wrapped('one'))).toEqual(first)
      const other = await view.take(PARTITION, inboxId, wrapped('other'))
      expect(other).toEqual({ stands: { state: 'wrapped', key: wrapped('one') }, wasContested: true })
    })

    it('forgets for good: no key and no record comes back over it', async () => {
      await view.take(PARTITION, inboxId, wrapped('one'))
      await view.forget(PARTITION, [inboxId])
      const taken = await view.take(PARTITION, inboxId, wrapped('one'))
      expect(taken).toEqual({ stands: { state: 'forgotten' }, wasContested: true })
      await begin(0)
      expect(await entryOf()).toEqual({ state: 'absent' })
      await apply(0, 2, [tells(inboxId, 'one'), tellsForgotten(inboxId)])
      expect(await entryOf()).toEqual({ state: 'forgotten' })
      expect(await apply(2, 3, [tells(inboxId, 'one')])).toEqual({ contested: [tellsForgotten(inboxId)] })
      expect(await entryOf()).toEqual({ state: 'forgotten' })
    })

    it('moves along the log from where it stands, and nowhere else', async () => {
      await begin(5)
      expect(await standing()).toEqual({ logId: LOG, next: 5, masterKeyId: null })
      expect(await apply(5, 9, [tells(inboxId, 'one')], { masterKeyId: 'a-master' })).toBe('applied')
      expect(await apply(5, 7, [tellsForgotten(inboxId)])).toBe('moved')
      expect(await apply(9, 10, [tellsForgotten(inboxId)], { logId: 'another' })).toBe('moved')
      expect(await standing()).toEqual({ logId: LOG, next: 9, masterKeyId: 'a-master' })
      expect(await entryOf()).toEqual({ state: 'wrapped', key: wrapped('one') })
      expect(await apply(9, 10, [])).toBe('applied')
      expect(await standing()).toEqual({ logId: LOG, next: 10, masterKeyId: 'a-master' })
    })

    it('has the last of several keys that only the log tells of, as compaction leaves it', async () => {
      await begin(0)
      expect(await apply(0, 1, [tells(inboxId, 'one')])).toBe('applied')
      expect(await apply(1, 3, [tells(inboxId, 'two'), tells(inboxId, 'three')])).toBe('applied')
      expect(await entryOf()).toEqual({ state: 'wrapped', key: wrapped('three') })
      const taken = await view.take(PARTITION, inboxId, wrapped('mine'))
      expect(taken).toEqual({ stands: { state: 'wrapped', key: wrapped('mine') }, wasContested: true })
    })

    it('stays before a record that another key than the one in use would outlive', async () => {
      await begin(0)
      await view.take(PARTITION, inboxId, wrapped('one'))
      const late = [tells(inboxId, 'late')]
      const contested = { contested: [tells(inboxId, 'one')] }
      expect(await apply(0, 1, late)).toEqual(contested)
      expect(await standing()).toMatchObject({ next: 0 })
      expect(await apply(0, 1, late, { settled: new Set([inboxId]) })).toBe('applied')
      expect(await entryOf()).toEqual({ state: 'wrapped', key: wrapped('one') })
      // What was settled stands behind it, and is not settled again where both are read at once.
      expect(await apply(1, 3, [...late, tells(inboxId, 'one')])).toBe('applied')
    })

    it('is emptied for another log, and begun by one only of those who saw it the same', async () => {
      await begin(0)
      await apply(0, 4, [tells(inboxId, 'one')])
      const seen = await standing()
      await begin(7, 'another', seen)
      expect(await standing()).toEqual({ logId: 'another', next: 7, masterKeyId: null })
      expect(await entryOf()).toEqual({ state: 'absent' })
      await begin(0, LOG, seen)
      expect(await standing()).toMatchObject({ logId: 'another', next: 7 })
    })

    it('keeps what it knows where the same log is read again', async () => {
      await begin(0)
      await apply(0, 4, [tells(inboxId, 'one')])
      await begin(0, LOG, await standing())
      expect(await standing()).toMatchObject({ next: 0 })
      expect(await entryOf()).toEqual({ state: 'wrapped', key: wrapped('one') })
    })
  })
}
