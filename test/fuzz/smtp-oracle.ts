/** What a client can expect, computed from the bytes that it sent and the replies that it got. */
export interface Expectation {
  /** Replies that must have arrived by now. */
  replies: number
  /** Whether the server ends the connection. */
  isEnd: boolean
  /** Whether the bytes end inside a mail. */
  isInMail: boolean
  /** Mails that were answered 250: id and content. */
  mails: { ids: string[]; raw: Buffer }[]
}

/** The limits of a command and of AUTH, without the CRLF. */
const MAX_COMMAND_BYTES = 2_048
const MAX_AUTH_BYTES = 12_288

/**
 * Reads the bytes of a session by RFC 5321, independently of the server: one reply for each line, and one for each mail
 * up to CRLF.CRLF. Throws if a reply can't belong to its line.
 */
export function expectationOf(
  wire: Buffer,
  replies: readonly string[],
  maxMessageBytes: number,
): Expectation {
  const expected: Expectation = { replies: 0, isEnd: false, isInMail: false, mails: [] }
  let at = 0
  while (!expected.isEnd) {
    const lineFeed = wire.indexOf('\n', at)
    const length = (lineFeed < 0 ? wire.length : lineFeed) - at
    const isCrLf = lineFeed > at && wire[lineFeed - 1] === 0x0d
    // The line is a part of the AUTH command before it (RFC 4954, section 4).
    const isAuthResponse = replies[expected.replies - 1]?.startsWith('334 ') === true
    const isAuth = isAuthResponse || /^AUTH /i.test(wire.toString('latin1', at, at + 5))
    const maxBytes = isAuth ? MAX_AUTH_BYTES : MAX_COMMAND_BYTES
    const isTooLong = lineFeed < 0 ? length > maxBytes + 1 : length + (isCrLf ? -1 : 1) > maxBytes
    if (lineFeed < 0 && !isTooLong) return expected
    const reply = replies[expected.replies]
    expected.replies += 1
    if (reply === undefined) return expected
    const command = wire.toString('latin1', at, at + length)
    at = lineFeed + 1
    if (isTooLong && !/^(500 5\.5\.2|421) /.test(reply))
      throw new Error(`a line of ${length} bytes: ${reply}`)
    const isLast =
      isTooLong || /^(221|421) /.test(reply) || (!isAuthResponse && /^BDAT( |\r$)/i.test(command))
    if (isLast) {
      expected.isEnd = true
    } else if (reply.startsWith('354 ')) {
      if (!isCrLf || !/^DATA( .*)?\r$/i.test(command)) throw new Error(`354 to ${JSON.stringify(command)}`)
      const end = endOfMail(wire, at)
      if (end === null) return { ...expected, isInMail: true }
      const answer = replies[expected.replies]
      expected.replies += 1
      if (answer === undefined) return expected
      checkMail(wire.subarray(at, end.content), answer, { maxMessageBytes, mails: expected.mails })
      at = end.next
      expected.isEnd = answer.startsWith('421 ')
    }
  }
  return expected
}

function endOfMail(wire: Buffer, from: number): { content: number; next: number } | null {
  if (wire.subarray(from, from + 3).equals(Buffer.from('.\r\n'))) return { content: from, next: from + 3 }
  const at = wire.indexOf('\r\n.\r\n', from)
  return at < 0 ? null : { content: at + 2, next: at + 5 }
}

function checkMail(
  content: Buffer,
  answer: string,
  { maxMessageBytes, mails }: { maxMessageBytes: number; mails: Expectation['mails'] },
): void {
  const text = content.toString('latin1')
  const raw = Buffer.from(text.replace(/(^|\r\n)\./g, '$1'), 'latin1')
  const hasBareBreak = /\r(?!\n)|(?<!\r)\n/.test(text)
  const isRight = answer.startsWith('250 2.0.0 msg_')
    ? !hasBareBreak && raw.length <= maxMessageBytes
    : hasBareBreak
      ? /^(554 5\.6\.0|421) /.test(answer)
      : /^(552|550|45[12]|421) /.test(answer)
  if (!isRight)
    throw new Error(
      `a mail of ${raw.length} bytes, ${hasBareBreak ? 'with' : 'without'} bare breaks: ${answer}`,
    )
  if (answer.startsWith('250 ')) mails.push({ ids: answer.split(' ').slice(2), raw })
}
