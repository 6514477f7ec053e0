import type { Connection } from './connection.js'
import { ApiError, MayflyError, type Problem } from './errors.js'
import type { QueryOptions, Schemas } from './options.js'

/** A difference between the mail of a load run and its manifest, or the summary. */
export type RunLine =
  Schemas['RunDifference'] | Schemas['MissingMail'] | Schemas['ErasedMail'] | Schemas['RunSummary']

/** A verification may take a minute. */
const TIMEOUT_MS = 600_000
const INCOMPLETE = 'The answer ended before its summary.'

/** Load runs: everything with a label. */
export class Runs {
  /** @internal */
  constructor(private readonly connection: Connection) {}

  /**
   * Compares the mail in the inboxes with a label, such as `run:42`, with what was sent. Yields the differences as they
   * are found, and then the summary. The manifest is read once and sent as it is read, so the request is not repeated
   * if it fails. `timeoutMs` and `signal` are for the start of the answer; 10 minutes by default.
   */
  async *verify(
    label: string,
    manifest: Iterable<Schemas['ManifestLine']> | AsyncIterable<Schemas['ManifestLine']>,
    options: QueryOptions<'verifyRun'> = {},
  ): AsyncGenerator<RunLine, void> {
    const path = `/v1/runs/${encodeURIComponent(label)}/verify`
    const answer = await this.connection.exchange(path, manifest, { timeoutMs: TIMEOUT_MS, ...options })
    let isComplete = false
    for await (const text of linesOf(answer)) {
      const line = JSON.parse(text) as RunLine | { kind: 'problem'; problem: Problem }
      if (line.kind === 'problem') throw new ApiError(line.problem)
      isComplete = line.kind === 'summary'
      yield line
    }
    if (!isComplete) throw new MayflyError(INCOMPLETE)
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  const next = () =>
    reader.read().catch((cause: unknown) => {
      throw new MayflyError(INCOMPLETE, { cause })
    })
  let rest = ''
  try {
    for (let read = await next(); !read.done; read = await next()) {
      const lines = (rest + decoder.decode(read.value, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } finally {
    // Also if the caller stops early.
    await reader.cancel().catch(() => undefined)
  }
}
