import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { KeyStatement, KeyStep, KeyView, KeyViewProgress } from './redis-key-view.js'
import type { WrappedKey } from '#libs/ports/key-vault/master-key.js'

export interface KeyViewHarness {
  view: KeyView
  close(): Promise<void>
}

const PARTITION = 3
const LOG = 'the-log'

const wrapped = (text: string): WrappedKey => ({ masterKeyId: 'a-master', wrapped: Buffer.from(text) })
const wraps = (inboxId: InboxId, text: string): KeyStatement => ({
  owner: inboxId,
  entry: { state: 'wrapped', key: wrapped(text) },
})
const forgets = (inboxId: InboxId): KeyStatement => ({ owner: inboxId, entry: { state: 'forgotten' } })

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
    const progress = async () => (await view.find(PARTITION, [])).progress
    const begin = (next: number, logId = LOG, seen: KeyViewProgress | null = null) =>
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

    it('is empty and has no progress at first', async () => {
      const found = await view.find(PARTITION, [inboxId, mintId('inb')])
      expect(found).toEqual({ progress: null, entries: [{ state: 'absent' }, { state: 'absent' }] })
    })

    it('returns an entry for each id, in order, of that partition only', async () => {
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

    it('keeps the key that was taken into use first, and reports a conflicting one', async () => {
      const first = await view.take(PARTITION, inboxId, wrapped('one'))
      expect(first).toEqual({ entry: { state: 'wrapped', key: wrapped('one') }, wasContested: false })
      expect(await view.take(PARTITION, inboxId, wrapped('one'))).toEqual(first)
      const other = await view.take(PARTITION, inboxId, wrapped('other'))
      expect(other).toEqual({ entry: { state: 'wrapped', key: wrapped('one') }, wasContested: true })
    })

    it('forgets permanently: no key or record replaces it', async () => {
      await view.take(PARTITION, inboxId, wrapped('one'))
      await view.forget(PARTITION, [inboxId])
      const taken = await view.take(PARTITION, inboxId, wrapped('one'))
      expect(taken).toEqual({ entry: { state: 'forgotten' }, wasContested: true })
      await begin(0)
      expect(await entryOf()).toEqual({ state: 'absent' })
      await apply(0, 2, [wraps(inboxId, 'one'), forgets(inboxId)])
      expect(await entryOf()).toEqual({ state: 'forgotten' })
      expect(await apply(2, 3, [wraps(inboxId, 'one')])).toEqual({ contested: [forgets(inboxId)] })
      expect(await entryOf()).toEqual({ state: 'forgotten' })
    })

    it('applies only steps that start at its own offset', async () => {
      await begin(5)
      expect(await progress()).toEqual({ logId: LOG, next: 5, masterKeyId: null })
      expect(await apply(5, 9, [wraps(inboxId, 'one')], { masterKeyId: 'a-master' })).toBe('applied')
      expect(await apply(5, 7, [forgets(inboxId)])).toBe('moved')
      expect(await apply(9, 10, [forgets(inboxId)], { logId: 'another' })).toBe('moved')
      expect(await progress()).toEqual({ logId: LOG, next: 9, masterKeyId: 'a-master' })
      expect(await entryOf()).toEqual({ state: 'wrapped', key: wrapped('one') })
      expect(await apply(9, 10, [])).toBe('applied')
      expect(await progress()).toEqual({ logId: LOG, next: 10, masterKeyId: 'a-master' })
    })

    it('has the last of several keys that are only on the log, as after compaction', async () => {
      await begin(0)
      expect(await apply(0, 1, [wraps(inboxId, 'one')])).toBe('applied')
      expect(await apply(1, 3, [wraps(inboxId, 'two'), wraps(inboxId, 'three')])).toBe('applied')
      expect(await entryOf()).toEqual({ state: 'wrapped', key: wrapped('three') })
      const taken = await view.take(PARTITION, inboxId, wrapped('mine'))
      expect(taken).toEqual({ entry: { state: 'wrapped', key: wrapped('mine') }, wasContested: true })
    })

    it('does not apply a record that contradicts the key in use until it is settled', async () => {
      await begin(0)
      await view.take(PARTITION, inboxId, wrapped('one'))
      const late = [wraps(inboxId, 'late')]
      const contested = { contested: [wraps(inboxId, 'one')] }
      expect(await apply(0, 1, late)).toEqual(contested)
      expect(await progress()).toMatchObject({ next: 0 })
      expect(await apply(0, 1, late, { settled: new Set([inboxId]) })).toBe('applied')
      expect(await entryOf()).toEqual({ state: 'wrapped', key: wrapped('one') })
      // The entry that settles it follows. If both are read together, it is not contested again.
      expect(await apply(1, 3, [...late, wraps(inboxId, 'one')])).toBe('applied')
    })

    it('is emptied for another log, by only one of the processes that saw the same progress', async () => {
      await begin(0)
      await apply(0, 4, [wraps(inboxId, 'one')])
      const seen = await progress()
      await begin(7, 'another', seen)
      expect(await progress()).toEqual({ logId: 'another', next: 7, masterKeyId: null })
      expect(await entryOf()).toEqual({ state: 'absent' })
      await begin(0, LOG, seen)
      expect(await progress()).toMatchObject({ logId: 'another', next: 7 })
    })

    it('keeps its entries if the same log is read again', async () => {
      await begin(0)
      await apply(0, 4, [wraps(inboxId, 'one')])
      await begin(0, LOG, await progress())
      expect(await progress()).toMatchObject({ next: 0 })
      expect(await entryOf()).toEqual({ state: 'wrapped', key: wrapped('one') })
    })
  })
}
