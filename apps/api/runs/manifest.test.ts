import fc from 'fast-check'
import { Manifest, type ManifestLine } from './manifest.js'

const line = (recipient: string, id: string, more: Partial<ManifestLine> = {}): ManifestLine => {
  return { recipient, id, sentAtMs: null, digest: null, ...more }
}
const manifestOf = (lines: readonly ManifestLine[], onGrow?: (bytes: number) => void): Manifest => {
  const manifest = new Manifest((recipient) => recipient.toLowerCase(), onGrow)
  for (const each of lines) manifest.add(each)
  return manifest
}

describe('a manifest', () => {
  it('returns its lines as they were added', () => {
    const digest = Buffer.alloc(32, 7)
    const lines = [
      line('a@mayfly.test', '<1>', { sentAtMs: 1_764_100_800_123, digest }),
      line('B@mayfly.test', '<grün>', { sentAtMs: 0 }),
      ...Array.from({ length: 10_000 }, (_, index) =>
        line(`${index}@mayfly.test`, '<x>'.repeat((index % 300) + 1)),
      ),
    ]
    const manifest = manifestOf(lines)
    expect(manifest.size).toBe(lines.length)
    for (const [index, each] of lines.entries()) {
      const read = manifest.read(index)
      expect({ ...read, digest: read.digest && Buffer.from(read.digest) }).toEqual(each)
    }
  })

  it('finds a line by its recipient and its id, once', () => {
    const manifest = manifestOf([line('a@x', '<1>'), line('A@x', '<2>'), line('b@x', '<1>')])
    expect(manifest.take('a@x', '<2>')).toBe(1)
    expect(manifest.take('a@x', '<2>')).toBeNull()
    expect(manifest.take('b@x', '<2>')).toBeUndefined()
    expect(manifest.take('b@x', '<1>')).toBe(2)
    expect([...manifest.pending()]).toEqual([0])
  })

  it('counts repeated lines as a list of lines does', () => {
    const few = fc.integer({ min: 0, max: 3 })
    const pairs = fc.array(fc.tuple(few, few), { maxLength: 40 })
    fc.assert(
      fc.property(pairs, pairs, (sent, received) => {
        const manifest = manifestOf(sent.map(([to, id]) => line(`${to}@x`, `<${id}>`)))
        const pending = sent.map(([to, id], index) => ({ name: `${to} ${id}`, index }))
        const known = new Set(pending.map(({ name }) => name))
        for (const [to, id] of received) {
          const name = `${to} ${id}`
          const at = pending.findIndex((each) => each.name === name)
          const [expected] = at < 0 ? [] : pending.splice(at, 1)
          const taken = manifest.take(`${to}@x`, `<${id}>`)
          expect(taken).toBe(expected?.index ?? (known.has(name) ? null : undefined))
        }
        expect([...manifest.pending()]).toEqual(pending.map(({ index }) => index))
      }),
    )
  })

  it('takes its memory before it grows', () => {
    let bytes = 0
    const lines = Array.from({ length: 100_000 }, (_, index) => {
      return line(`${index}@mayfly.test`.padStart(33, 'a'), `<${index}@load.example>`.padEnd(40), {
        digest: Buffer.alloc(32),
      })
    })
    manifestOf(lines, (more) => (bytes += more))
    // 8 MiB for the table, and 150 bytes for each line.
    expect(bytes).toBeLessThan(8 * 1024 * 1024 + 100_000 * 150)
    expect(bytes).toBeGreaterThan(8 * 1024 * 1024 + 100_000 * 130)
    const full = new Error('full')
    let left = 9 * 1024 * 1024
    const refuse = (more: number) => {
      left -= more
      if (left < 0) throw full
    }
    expect(() => manifestOf(lines, refuse)).toThrow(full)
  })
})
