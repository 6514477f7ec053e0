/**
 * Mails made to cost much: each a function from about how many bytes to a source, so that the cost of one may be
 * measured against the cost of another twice as large. Bytes are made when asked for, none are stored.
 */
export type Bomb = (bytes: number) => Buffer

export const CRLF = '\r\n'

/** A mail with those fields in its header besides the usual ones. */
export function sourceOf(head: readonly string[], body: string | Buffer): Buffer {
  const top = ['From: a@example.com', 'To: b@example.com', 'Subject: bomb', ...head, '', ''].join(CRLF)
  return Buffer.concat([Buffer.from(top), typeof body === 'string' ? Buffer.from(body) : body])
}

/** The unit over and over, at least once. */
export function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.max(Math.floor(bytes / unit.length), 1))
}

/** Pieces that are numbered, so that no two are alike. */
export function numbered(bytes: number, unit: (number: number) => string): string {
  const pieces: string[] = []
  for (let [length, number] = [0, 0]; length < bytes; number++) {
    const piece = unit(number)
    pieces.push(piece)
    length += piece.length
  }
  return pieces.join('')
}
