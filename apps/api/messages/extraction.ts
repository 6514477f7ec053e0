import { Injectable } from '@nestjs/common'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { messageJson, type OpenedMessage } from '#libs/mail/json/message-json.js'
import { invalid } from '../http/problems.js'
import { ContentPool } from './content-pool.js'
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

/** Finds what the expressions of callers match in messages. */
@Injectable()
export class Extraction {
  constructor(private readonly pool: ContentPool) {}

  /** Null without a pattern. Throws invalid-request if it is not valid, and the errors of `ContentPool.extract`. */
  async start(
    pattern: string | undefined,
    accountId: AccountId,
    clientGone: AbortSignal,
  ): Promise<Extractor | null> {
    if (pattern === undefined) return null
    const extractor = new Extractor(this.pool, pattern, accountId, clientGone)
    await extractor.requireValid()
    return extractor
  }
}

/** Finds what the expression of one request matches. */
export class Extractor {
  constructor(
    private readonly pool: ContentPool,
    private readonly pattern: string,
    private readonly accountId: AccountId,
    private readonly clientGone: AbortSignal,
  ) {}

  async requireValid(): Promise<void> {
    if ((await this.searchTexts([])) === null) throw invalid({ detail: TOO_LONG, parameter: 'extract' })
  }

  /** The message with the matches in it. Throws invalid-request if that takes too much time or memory. */
  async find(message: OpenedMessage): Promise<FoundMessage> {
    const extracted = await this.search(message)
    if (extracted === null) {
      throw invalid({ detail: `${TOO_LONG} in the message ${message.id}`, parameter: 'extract' })
    }
    return withExtracted(message, extracted)
  }

  /** Why the message does not match, if it does not, and the message with the matches in it. */
  async examine(message: OpenedMessage): Promise<{ mismatches: string[]; found: FoundMessage }> {
    const extracted = await this.search(message)
    const found = withExtracted(message, extracted ?? [])
    if (extracted === null) return { mismatches: [TOO_LONG], found }
    return { mismatches: extracted.length === 0 ? ['extract has no match'] : [], found }
  }

  private search({ mail: { subject, text, htmlText } }: Pick<OpenedMessage, 'mail'>) {
    return this.searchTexts([subject, text, htmlText])
  }

  private async searchTexts(texts: (string | null)[]): Promise<Extracted[] | null> {
    const result = await this.pool.extract(this.accountId, { pattern: this.pattern, texts }, this.clientGone)
    if (result?.state !== 'invalid') return result?.extracted ?? null
    const { reason, position } = result
    const detail = `extract is not a valid RE2 expression: ${reason}, at position ${position} (the first character is 0)`
    throw invalid({ detail, parameter: 'extract' })
  }
}

function withExtracted(message: OpenedMessage, extracted: readonly Extracted[]): FoundMessage {
  return { ...message, bytes: message.bytes + Buffer.byteLength(JSON.stringify(extracted)), extracted }
}

/** As `mismatches` of the matcher, also for the expression if there is one. */
export async function examine(
  message: OpenedMessage,
  matcher: Matcher,
  extractor: Extractor | null,
): Promise<{ mismatches: string[]; found: FoundMessage }> {
  const mismatches = await matcher.mismatches(message)
  if (extractor === null) return { mismatches, found: message }
  const extracted = await extractor.examine(message)
  return { ...extracted, mismatches: [...mismatches, ...extracted.mismatches] }
}
