import fc from 'fast-check'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fragment, markup } from './mime-words.js'

const MAIL = join(process.cwd(), 'libs/mail')

/** Longer repetitions take time without finding more. */
const MAX_BYTES = 200_000

/** Valid mails. */
export const golden = readdirSync(MAIL, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.eml'))
  .map((name) => readFileSync(join(MAIL, name)))

const position = fc.double({ min: 0, max: 1, noNaN: true })

export type Change = (source: Buffer) => Buffer

export const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(position, fc.nat(255)).map(([at, byte]): Change => (source) => {
    const changed = Buffer.from(source)
    if (changed.length > 0) changed[indexIn(changed, at)] = byte
    return changed
  }),
  fc.tuple(position, position).map(([from, to]): Change => (source) => {
    const [start, end] = rangeIn(source, from, to)
    return Buffer.concat([source.subarray(0, start), source.subarray(end)])
  }),
  fc.tuple(position, fc.oneof(fragment, markup)).map(([at, piece]): Change => (source) => {
    const index = indexIn(source, at)
    return Buffer.concat([source.subarray(0, index), Buffer.from(piece), source.subarray(index)])
  }),
  fc.tuple(position, fc.constantFrom(...golden), position).map(([at, other, from]): Change => (source) => {
    const index = indexIn(source, at)
    return Buffer.concat([source.subarray(0, index), other.subarray(indexIn(other, from))])
  }),
)

/** Repeats a short piece, so that superlinear time shows. */
export const repetition: fc.Arbitrary<Change> = fc
  .tuple(position, fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: MAX_BYTES }))
  .map(([at, length, bytes]): Change => (source) => {
    const start = indexIn(source, at)
    const piece = source.subarray(start, start + length)
    if (piece.length === 0) return source
    const times = Math.ceil(bytes / piece.length)
    return Buffer.concat([
      source.subarray(0, start),
      Buffer.alloc(times * piece.length, piece),
      source.subarray(start),
    ])
  })

function indexIn(source: Buffer, at: number): number {
  return Math.min(Math.floor(at * source.length), Math.max(source.length - 1, 0))
}

function rangeIn(source: Buffer, one: number, other: number): [number, number] {
  const [from, to] = [indexIn(source, one), indexIn(source, other)]
  return [Math.min(from, to), Math.max(from, to)]
}
