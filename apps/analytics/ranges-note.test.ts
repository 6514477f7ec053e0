import { MAX_NOTE_BYTES } from '#libs/ports/event-log/event-log.js'
import { MAX_RANGES, readRanges, writeRanges } from './batches-in-doubt.js'

describe('a note of ranges', () => {
  it('has room for the most of them, whatever their offsets', () => {
    const ranges = Array.from({ length: MAX_RANGES }, (_, n) => ({
      partition: 999_999 - n,
      first: 999_999_999_999_000,
      end: 999_999_999_999_999,
    }))
    const note = writeRanges(ranges)
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(MAX_NOTE_BYTES)
    expect(readRanges(note)).toEqual(ranges)
  })

  it('has none where it is empty or another', () => {
    expect(readRanges('')).toEqual([])
    expect(readRanges('1:0-5 2:x')).toEqual([])
  })
})
