import { mintId } from '#libs/domain/ids/mint.js'
import { isId } from '#libs/domain/ids/typeid.js'
import { seededMinting } from '../idempotency/idempotency.js'

const run = { seed: Buffer.alloc(32, 7), firstAtMs: Date.UTC(2026, 0, 1) }

const drawn = (from = run, secret = 'secret') => {
  const minting = seededMinting(from, secret)
  const ids = Array.from({ length: 1_000 }, () => minting.id('inb'))
  return {
    ids,
    bytes: [minting.bytes(16), minting.bytes(20)].map((bytes) => Buffer.from(bytes).toString('hex')),
  }
}

describe('minting for a request that may be run again', () => {
  it('gives every run the same', () => {
    expect(drawn()).toEqual(drawn())
  })

  it('gives ids of their own, in the order of their making, of the moment at which the request came', () => {
    const { ids } = drawn()
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.toSorted()).toEqual(ids)
    for (const id of ids) expect(isId('inb', id)).toBe(true)
    const later = drawn({ ...run, firstAtMs: run.firstAtMs + 1 }).ids
    expect((later[0] ?? '') > (ids.at(-1) ?? '')).toBe(true)
    const atRandom = mintId('inb')
    const [now = ''] = drawn({ ...run, firstAtMs: Date.now() + 5 }).ids
    expect(now > atRandom).toBe(true)
  })

  it('gives another request, and the bytes of another secret, others', () => {
    const [here, elsewhere] = [drawn(), drawn({ ...run, seed: Buffer.alloc(32, 8) })]
    expect(here.ids.filter((id) => elsewhere.ids.includes(id))).toEqual([])
    expect(new Set([...here.bytes, ...elsewhere.bytes, ...drawn(run, 'another').bytes]).size).toBe(6)
    expect(drawn(run, 'another').ids).toEqual(here.ids)
  })
})
