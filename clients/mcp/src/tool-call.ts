import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { setTimeout as pause } from 'node:timers/promises'
import { ApiError, Mayfly, MayflyError, type Inbox } from '#clients/typescript/src/mayfly.js'
import { oneLine } from './mail-content.js'

/** How tools reach the API. */
export interface Connection {
  /** Where the API listens. */
  url: string
  apiKey: string
  /** Used instead of the global `fetch`. */
  fetch?: typeof fetch
  /** Called with an error of a tool that is neither an answer of the API nor a lost connection. */
  onError: (error: unknown) => void
}

/** One call of a tool. */
export interface ToolCall {
  mayfly: Mayfly
  answers: Answers
  /** Aborts when the caller cancels the call or leaves. */
  signal: AbortSignal
}

/** Runs a tool. An error becomes a result of the tool, so that the model can react to it. */
export async function runTool(
  { url, apiKey, fetch, onError }: Connection,
  signal: AbortSignal,
  work: (call: ToolCall) => Promise<CallToolResult>,
): Promise<CallToolResult> {
  try {
    const answers = new Answers(fetch)
    return await work({ mayfly: new Mayfly({ url, apiKey, fetch: answers.fetch }), answers, signal })
  } catch (error) {
    if (!(error instanceof MayflyError) && !signal.aborted) onError(error)
    return { content: [{ type: 'text', text: failureText(error) }], isError: true }
  }
}

const ASK_AGAIN_MS = 1_000

/**
 * The inbox with an id or an address. An address may have no inbox until `deadline`, a time by `performance.now()`, since
 * mail to it may make one.
 */
export async function inboxBy(
  { mayfly, signal }: ToolCall,
  inbox: string,
  { password, deadline = 0 }: { password: string | undefined; deadline?: number },
): Promise<Inbox> {
  if (!inbox.includes('@')) return mayfly.inboxes.get(inbox, { password, signal })
  for (;;) {
    const [found] = await mayfly.inboxes.list({ address: inbox, limit: 1, signal })
    if (found !== undefined) return mayfly.inboxes.get(found.id, { password, signal })
    if (performance.now() >= deadline)
      throw new MayflyError(`No active inbox has the address ${oneLine(inbox)}.`)
    await pause(ASK_AGAIN_MS, undefined, { signal })
  }
}

/** Annotations of tools that return mail, which comes from outside. */
export const READS_MAIL = { readOnlyHint: true, openWorldHint: true }

/** The result of a tool, for programs and as text for models. */
export function result(structuredContent: Record<string, unknown>, ...lines: string[]): CallToolResult {
  return { structuredContent, content: [{ type: 'text', text: lines.join('\n') }] }
}

function failureText(error: unknown): string {
  if (!(error instanceof MayflyError)) return 'The tool failed because of an error in Mayfly. Try again.'
  const isAboutPassword = error instanceof ApiError && error.code.startsWith('inbox-password-')
  if (!isAboutPassword) return error.message
  return `${error.detail} [${error.status} ${error.code}] Pass the password from the result of create_inbox as \`password\`.`
}

/** Observes the answers of the API to one call of a tool. */
export class Answers {
  private latest = new Headers()

  constructor(private readonly request: typeof fetch = globalThis.fetch) {}

  /** The position in the inbox that the latest answer has, for the next list or wait; null if it has none. */
  get cursor(): string | null {
    return this.latest.get('mayfly-cursor')
  }

  /** Whether the latest list continues on another page. */
  get hasNextPage(): boolean {
    return this.latest.get('link')?.includes('rel="next"') ?? false
  }

  /**
   * Hides the next page of a list from the client. Pages end early if mail is large, and many calls that each collect
   * several pages would take too much memory.
   */
  readonly fetch: typeof fetch = async (...request) => {
    const response = await this.request(...request)
    this.latest = response.headers
    const headers = new Headers(response.headers)
    headers.delete('link')
    return new Response(response.body, { status: response.status, headers })
  }
}
