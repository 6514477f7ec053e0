/**
 * A mail that is expensive to parse: a function from an approximate size in bytes to a source, so that tests can compare
 * the cost of one size with the cost of twice that size.
 */
export type Bomb = (bytes: number) => Buffer

export const CRLF = '\r\n'

/** A mail with these header fields in addition to the usual ones. */
export function sourceOf(head: readonly string[], body: string | Buffer): Buffer {
  const top = ['From: a@example.com', 'To: b@example.com', 'Subject: bomb', ...head, '', ''].join(CRLF)
  return Buffer.concat([Buffer.from(top), typeof body === 'string' ? Buffer.from(body) : body])
}

/** Repeats the unit up to that size, at least once. */
export function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.max(Math.floor(bytes / unit.length), 1))
}

/** Repeats a unit with increasing numbers, so that all are different. */
export function numbered(bytes: number, unit: (number: number) => string): string {
  const pieces: string[] = []
  for (let [length, number] = [0, 0]; length < bytes; number++) {
    const piece = unit(number)
    pieces.push(piece)
    length += piece.length
  }
  return pieces.join('')
}
