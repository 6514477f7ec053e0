import { crc32 } from 'node:zlib'
import type { MailOwner } from '#libs/ports/read-model/views.js'
import { invalid, type Location } from '../http/problems.js'
import type { MailPosition } from './mail-source.js'

const CHECKSUM_BYTES = 4

/** The position in the mail of an environment. Clients get it as an opaque text: numbers of variable length, and a checksum of them and the environment. */
export function writeEnvironmentCursor(owner: MailOwner, { from, range }: MailPosition): string {
  const after = (offsets: readonly number[], starts: readonly number[]) =>
    offsets.map((offset, partition) => offset - (starts[partition] ?? 0))
  const numbers = range === null ? from : [...from, ...after(range.to, from), ...after(range.end, range.to)]
  const bytes = Buffer.from(numbers.flatMap((number) => [...digitsOf(number)]))
  const checksum = Buffer.alloc(CHECKSUM_BYTES)
  checksum.writeUInt32BE(checksumOf(owner, bytes))
  return Buffer.concat([bytes, checksum]).toString('base64url')
}

/** Throws invalid-request with the location of the cursor if it is not a cursor of this environment. */
export function readEnvironmentCursor(
  owner: MailOwner,
  partitions: number,
  text: string,
  location: Location = { parameter: 'cursor' },
): MailPosition {
  const whole = Buffer.from(text, 'base64url')
  const bytes = whole.subarray(0, -CHECKSUM_BYTES)
  const isIntact =
    whole.length > CHECKSUM_BYTES &&
    whole.toString('base64url') === text &&
    whole.readUInt32BE(bytes.length) === checksumOf(owner, bytes)
  const numbers = isIntact ? numbersIn(bytes) : []
  const from = numbers.slice(0, partitions)
  if (numbers.length === partitions) return { from, range: null }
  if (numbers.length !== 3 * partitions)
    throw invalid({ detail: 'the cursor is not from this list', ...location })
  const to = from.map((offset, partition) => offset + (numbers[partitions + partition] ?? 0))
  const end = to.map((offset, partition) => offset + (numbers[2 * partitions + partition] ?? 0))
  return { from, range: { to, end } }
}

/** A number in base 128, the least significant digit first. Every digit except the last has its high bit set. */
function* digitsOf(number: number): Generator<number> {
  let rest = number
  for (; rest >= 128; rest = Math.floor(rest / 128)) yield 128 + (rest % 128)
  yield rest
}

function numbersIn(bytes: Uint8Array): number[] {
  const numbers: number[] = []
  let [number, unit] = [0, 1]
  for (const digit of bytes) {
    number += (digit % 128) * unit
    unit *= 128
    if (digit >= 128) continue
    numbers.push(number)
    ;[number, unit] = [0, 1]
  }
  return numbers
}

function checksumOf({ accountId, environment }: MailOwner, bytes: Uint8Array): number {
  return crc32(bytes, crc32(`${accountId} ${environment}`))
}
