import type { AccountId } from '#libs/domain/ids/typeid.js'
import { messageJson, type OpenedMessage } from '#libs/mail/json/message-json.js'
import { invalid } from '../http/problems.js'
import type { ContentPool } from './content-pool.js'
import type { Extracted } from './extract-worker.js'
import type { Matcher } from './matching.js'

const TOO_LONG = 'extract took more time or memory than allowed'

/** A message that an answer has. */
export interface FoundMessage extends OpenedMessage {
  /** What the expression of the request matches, if it has one. */
  extracted?: readonly Extracted[]
}

/** As `messageJson`, with what was extracted. */
export function foundMessageJson(message: FoundMessage, basePath: string) {
  return { ...messageJson(message, basePath), extracted: message.extracted }
}

/** Finds what the expression of one request matches in a message. Null if that takes too much time or memory. */
export type Extractor = (message: OpenedMessage) => Promise<Required<FoundMessage> | null>

/** Null without a pattern. Throws invalid-request if it is not valid, and the errors of `ContentPool.run`. */
export async function openExtractor(
  pool: ContentPool,
  pattern: string | undefined,
  accountId: AccountId,
  signal: AbortSignal,
): Promise<Extractor | null> {
  if (pattern === undefined) return null
  const search = async (texts: (string | null)[]): Promise<Extracted[] | null> => {
    // An owner of its own, so that expressions do not delay the account's attachments and documents.
    const done = await pool.run('extract', `extract ${accountId}`, () => ({ pattern, texts }), signal)
    if (done?.result.state !== 'invalid') return done?.result.extracted ?? null
    const { reason, position } = done.result
    const detail = `extract is not a valid RE2 expression: ${reason}, at position ${position} (the first character is 0)`
    throw invalid({ detail, parameter: 'extract' })
  }
  if ((await search([])) === null) throw invalid({ detail: TOO_LONG, parameter: 'extract' })
  return async (message) => {
    const { subject, text, htmlText } = message.mail
    const extracted = await search([subject, text, htmlText])
    if (extracted === null) return null
    return { ...message, bytes: message.bytes + Buffer.byteLength(JSON.stringify(extracted)), extracted }
  }
}

/** The message with its matches. Throws invalid-request if finding them takes too much time or memory. */
export async function withMatches(
  message: OpenedMessage,
  extractor: Extractor | null,
): Promise<FoundMessage> {
  const found = extractor === null ? message : await extractor(message)
  if (found !== null) return found
  throw invalid({ detail: `${TOO_LONG} in the message ${message.id}`, parameter: 'extract' })
}

/**
 * As `mismatches` of the matcher, also for the expression if there is one, with the message and the matches in it. It is
 * only searched in a message that matches otherwise.
 */
export async function examine(
  message: OpenedMessage,
  matcher: Matcher,
  extractor: Extractor | null,
): Promise<{ mismatches: string[]; found: FoundMessage }> {
  const mismatches = await matcher.mismatches(message)
  if (extractor === null || mismatches.length > 0) return { mismatches, found: message }
  const found = await extractor(message)
  if (found === null) return { mismatches: [TOO_LONG], found: message }
  return { mismatches: found.extracted.length === 0 ? ['extract has no match'] : [], found }
}
