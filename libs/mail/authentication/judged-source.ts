const END_OF_HEADER = Buffer.from('\r\n\r\n')
const LF = 10
const MOST_HEADER_BYTES = 128 * 1024
/** The library unfolds a field, and reads a line of the body, in time that grows with the square of its length. */
const MOST_LINES_OF_A_FIELD = 500
const MOST_LINE_BYTES = 1024 * 1024
/** RFC 6376, section 4: a verifier may bound how many signatures it looks at. */
const MOST_SIGNATURES = 10
/** Each signature may want a hash of the whole body. */
const MOST_HASHED_BYTES = 64 * 1024 * 1024

/**
 * The mail as it is judged: of its signatures those on top, at most ten and fewer of a large mail. Where it is made
 * like no real mail, and judging it would cost seconds, why it is not judged.
 */
export function judgedSource(raw: Buffer): { source: Buffer } | { reason: string } {
  const end = raw.indexOf(END_OF_HEADER)
  const header = end === -1 ? raw : raw.subarray(0, end)
  if (header.length > MOST_HEADER_BYTES) return { reason: 'the header is too large to be judged' }
  if (hasLongLine(raw)) return { reason: 'a line is too long to be judged' }
  const fields = header.toString('latin1').split(/\r\n(?![ \t])/)
  if (fields.some(hasManyLines)) return { reason: 'a header field has too many lines to be judged' }

  const mostSignatures = Math.min(MOST_SIGNATURES, Math.max(1, Math.floor(MOST_HASHED_BYTES / raw.length)))
  let signatures = 0
  const kept = fields.filter(
    (field) => !/^dkim-signature[ \t]*:/i.test(field) || ++signatures <= mostSignatures,
  )
  if (kept.length === fields.length) return { source: raw }
  return { source: Buffer.concat([Buffer.from(kept.join('\r\n'), 'latin1'), raw.subarray(header.length)]) }
}

function hasLongLine(raw: Buffer): boolean {
  for (let start = 0; raw.length - start > MOST_LINE_BYTES;) {
    const lineEnd = raw.lastIndexOf(LF, start + MOST_LINE_BYTES)
    if (lineEnd < start) return true
    start = lineEnd + 1
  }
  return false
}

function hasManyLines(field: string): boolean {
  let lines = 0
  for (let at = field.indexOf('\n'); at !== -1; at = field.indexOf('\n', at + 1)) lines += 1
  return lines > MOST_LINES_OF_A_FIELD
}
