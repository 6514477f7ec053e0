import { cursorOf, readJson } from './connection.js'
import {
  ApiError,
  MayflyError,
  printable,
  quoted,
  UnreachableError,
  WaitTimeoutError,
  type NearMiss,
} from './errors.js'
import { Message, type Access } from './message.js'
import { splitOptions, type CallOptions, type QueryOptions, type Schemas } from './options.js'

/** Which messages match. All given filters must hold; a text matches if it is contained, in upper or lower case. */
export type Filters = Pick<
  QueryOptions<'waitForInboxMessage'>,
  'subject' | 'sender' | 'recipient' | 'detail' | 'to' | 'text' | 'header' | 'hasCode' | 'hasLink' | 'extract'
>

export interface MatchOptions extends Filters, CallOptions {
  /** Also required of a matching message; called in this process. */
  match?: ((message: Message) => boolean) | undefined
  /** Only messages after this position: a cursor of the inbox or of a message. By default all messages. */
  since?: string | undefined
}

export interface WaitOptions extends MatchOptions {
  /** `asc`, the default, takes the oldest match; `desc` the newest one that is there, otherwise the next to arrive. */
  order?: 'asc' | 'desc' | undefined
}

/**
 * What to wait for in an inbox.
 * @internal
 */
export interface Wait {
  access: Access
  path: string
  address: string
  options: WaitOptions
  /** The whole time, and when it ends by `performance.now()`. */
  timeoutMs: number
  deadline: number
  /** A sentence for the error about each message that `match` rejects. */
  requirement?: string
  /** A sentence for the error: how many messages matched before. */
  found?: string
}

/** The longest wait of one request. */
const MAX_POLL_SECONDS = 30
/** The time of the last request, which reports what has arrived. */
const LAST_POLL_MS = 5_000
/** The messages that an error lists. */
const MAX_LISTED = 10

/** A message matched although none was expected. */
export class UnexpectedMessageError extends MayflyError {
  override readonly name = 'UnexpectedMessageError'

  /** @internal */
  constructor(
    readonly received: Message,
    address: string,
  ) {
    const { subject, sender, received_at } = received
    const about = `${quoted(subject)} from ${printable(sender)}, ${received_at}`
    super(`Expected no message for ${address}, but one arrived: ${about}`)
  }
}

/**
 * The first message that matches: one that is there, or the next to arrive. Polls again from the same position, and
 * after a message that `match` rejects from the position after it. Rejects with WaitTimeoutError.
 * @internal
 */
export async function nextMatch(wait: Wait): Promise<Message> {
  const { match, since, ...options } = wait.options
  if ('timeout' in options) throw new MayflyError('There is no option timeout: use timeoutMs.')
  const rejected: NearMiss[] = []
  let cursor = since
  for (;;) {
    try {
      const query = { ...options, cursor }
      const message = await pollUntil(wait, query, async (response) => {
        return new Message(wait.access, await readJson<Schemas['Message']>(response), cursorOf(response))
      })
      if (match === undefined || match(message)) return message
      const { id, inbox_id, subject, received_at } = message
      rejected.push({
        id,
        inbox_id,
        subject,
        received_at,
        mismatches: [wait.requirement ?? 'The function `match` rejects it.'],
      })
      cursor = message.cursor ?? cursor
    } catch (error) {
      if (!hasNone(error)) throw error
      const { examined = 0, nearest = [], cursor: end = '' } = error.problem
      throw new WaitTimeoutError(
        `${wait.found ?? ''}No message for ${wait.address} matched within ${wait.timeoutMs / 1_000} s${describe(options)}.`,
        [...rejected, ...nearest].slice(-MAX_LISTED),
        rejected.length + examined,
        end,
      )
    }
  }
}

/**
 * Sends the wait again and again until it is answered. When no time is left, a last request looks at what has arrived, and
 * this rejects with its error.
 * @internal
 */
export async function pollUntil<Answer>(
  { access, path, deadline }: Pick<Wait, 'access' | 'path' | 'deadline'>,
  options: CallOptions & Record<string, unknown>,
  read: (response: Response) => Promise<Answer>,
): Promise<Answer> {
  const [call, query] = splitOptions({ password: access.password, ...options })
  for (;;) {
    const leftMs = deadline - performance.now()
    const timeout = Math.min(Math.max(Math.ceil(leftMs / 1_000), 0), MAX_POLL_SECONDS)
    const timeoutMs = leftMs > 0 ? leftMs : LAST_POLL_MS
    const request = {
      ...({ method: 'GET', path: `${path}/messages/wait` } as const),
      query: { ...query, timeout },
    }
    try {
      return await access.connection.send(request, { ...call, timeoutMs }, read)
    } catch (error) {
      const isLate = error instanceof UnreachableError && error.isTimeout
      if (leftMs <= 0 || !(isLate || hasNone(error))) throw error
    }
  }
}

function hasNone(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === 'no-matching-message'
}

/** The filters in words: `: subject contains "Welcome", has a code`. */
function describe({ hasCode, hasLink, extract, ...others }: WaitOptions): string {
  const { subject, sender, recipient, detail, to, text, header } = others
  const texts = Object.entries({ subject, sender, recipient, detail, to, text, header: header?.join(', ') })
  const filters = [
    ...texts.flatMap(([name, value]) =>
      value === undefined ? [] : [`${name} contains ${JSON.stringify(value)}`],
    ),
    ...(extract === undefined ? [] : [`has a match of ${JSON.stringify(extract)}`]),
    ...(hasCode === undefined ? [] : [hasCode ? 'has a code' : 'has no code']),
    ...(hasLink === undefined ? [] : [hasLink ? 'has a link' : 'has no link']),
  ]
  return filters.length === 0 ? '' : `: ${filters.join(', ')}`
}
