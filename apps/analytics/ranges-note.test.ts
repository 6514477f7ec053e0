import { MAX_NOTE_BYTES } from '#libs/ports/event-log/event-log.js'
import { MAX_RANGES, readRanges, writeRanges } from './batches-in-doubt.js'

describe('a note of ranges', () => {
  it('can hold MAX_RANGES ranges with the largest offsets', () => {
    const ranges = Array.from({ length: MAX_RANGES }, (_, n) => ({
      partition: 999_999 - n,
      first: 999_999_999_999_000,
      end: 999_999_999_999_999,
    }))
    const note = writeRanges(ranges)
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(MAX_NOTE_BYTES)
    expect(readRanges(note)).toEqual(ranges)
  })

  it('has no ranges if it is empty or has another format', () => {
    expect(readRanges('')).toEqual([])
    expect(readRanges('1:0-5 2:x')).toEqual([])
  })
})
