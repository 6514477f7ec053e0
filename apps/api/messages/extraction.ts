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

/** Finds what the expression of one request matches. Its methods throw the errors of `ContentPool.extract`. */
export class Extractor {
  private constructor(
    private readonly pool: ContentPool,
    private readonly pattern: string,
    private readonly accountId: AccountId,
  ) {}

  /** Null without a pattern. Throws invalid-request if it is not valid. */
  static async open(
    pool: ContentPool,
    pattern: string | undefined,
    accountId: AccountId,
    signal: AbortSignal,
  ): Promise<Extractor | null> {
    if (pattern === undefined) return null
    const extractor = new Extractor(pool, pattern, accountId)
    if ((await extractor.searchTexts([], signal)) === null)
      throw invalid({ detail: TOO_LONG, parameter: 'extract' })
    return extractor
  }

  /** The message with the matches in it. Throws invalid-request if that takes too much time or memory. */
  async find(message: OpenedMessage, signal: AbortSignal): Promise<FoundMessage> {
    const extracted = await this.search(message, signal)
    if (extracted !== null) return withExtracted(message, extracted)
    throw invalid({ detail: `${TOO_LONG} in the message ${message.id}`, parameter: 'extract' })
  }

  /** The matches in a message; null if that takes too much time or memory. */
  search({ mail }: Pick<OpenedMessage, 'mail'>, signal: AbortSignal): Promise<Extracted[] | null> {
    return this.searchTexts([mail.subject, mail.text, mail.htmlText], signal)
  }

  private async searchTexts(texts: (string | null)[], signal: AbortSignal): Promise<Extracted[] | null> {
    const result = await this.pool.extract(this.accountId, { pattern: this.pattern, texts }, signal)
    if (result?.state !== 'invalid') return result?.extracted ?? null
    const { reason, position } = result
    const detail = `extract is not a valid RE2 expression: ${reason}, at position ${position} (the first character is 0)`
    throw invalid({ detail, parameter: 'extract' })
  }
}

function withExtracted(message: OpenedMessage, extracted: readonly Extracted[]): FoundMessage {
  return { ...message, bytes: message.bytes + Buffer.byteLength(JSON.stringify(extracted)), extracted }
}

/**
 * As `mismatches` of the matcher, also for the expression if there is one, with the message and the matches in it. It is
 * only searched in a message that matches otherwise.
 */
export async function examine(
  message: OpenedMessage,
  matcher: Matcher,
  extractor: Extractor | null,
  signal: AbortSignal,
): Promise<{ mismatches: string[]; found: FoundMessage }> {
  const mismatches = await matcher.mismatches(message)
  if (extractor === null || mismatches.length > 0) return { mismatches, found: message }
  const extracted = await extractor.search(message, signal)
  if (extracted === null) return { mismatches: [TOO_LONG], found: message }
  if (extracted.length === 0) return { mismatches: ['extract has no match'], found: message }
  return { mismatches, found: withExtracted(message, extracted) }
}
