import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Connection } from '#clients/typescript/src/connection.js'
import { EXIT, Failure, noInboxAt } from './failure.js'

export interface GlobalOptions {
  url: string
  key?: string
  json?: boolean
}

/** Of a request with its retries. */
const TIMEOUT_MS = 15_000

/** What commands use: the API, and the output. */
export class Session {
  constructor(
    private readonly options: () => GlobalOptions,
    private readonly output: Writable & { isTTY?: boolean },
  ) {}

  /** Requests to the API. Called when a command runs, so that help and usage errors require no key. */
  api(): Connection {
    return new Connection({ ...this.server(), timeoutMs: TIMEOUT_MS, fetch })
  }

  /** Throws Failure if the options have no valid URL or key. */
  server(): { url: string; apiKey: string } {
    const { url, key = '' } = this.options()
    if (key === '') throw new Failure(EXIT.usage, 'no API key: set MAYFLY_KEY')
    if (!/^[!-~]+$/.test(key)) {
      throw new Failure(EXIT.usage, 'the key must consist of visible ASCII characters')
    }
    const parsed = URL.parse(url)
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw new Failure(EXIT.usage, `not an http or https URL: ${url}`)
    }
    return { url: parsed.href.replace(/\/+$/, ''), apiKey: key }
  }

  /** The path of an inbox, by its id or its address. Throws Failure if no inbox of the environment has the address. */
  async inboxPath(inbox: string): Promise<string> {
    const path = await this.findInboxPath(inbox)
    if (path === null) throw noInboxAt(inbox)
    return path
  }

  /** As `inboxPath`, but null if no inbox has the address. */
  async findInboxPath(inbox: string): Promise<string | null> {
    const byAddress = { address: inbox, limit: 1 }
    const [found] = inbox.includes('@')
      ? await this.api().list<{ id: string }>('/v1/inboxes', byAddress)
      : [{ id: inbox }]
    return found === undefined ? null : `/v1/inboxes/${encodeURIComponent(found.id)}`
  }

  /** Prints the result of a command once it is settled: as JSON with --json, otherwise as text. */
  async print<Result>(result: Result | Promise<Result>, toText: (result: Result) => string): Promise<void> {
    const settled = await result
    this.write(`${this.options().json === true ? JSON.stringify(settled) : toText(settled)}\n`)
  }

  /** Prints bytes or text unchanged, and nothing else. */
  write(content: Uint8Array | string): void {
    this.output.write(content)
  }

  /** The same for a stream, with backpressure. */
  async writeAll(content: AsyncIterable<Uint8Array>): Promise<void> {
    await pipeline(content, this.output, { end: false })
  }

  get isTerminal(): boolean {
    return this.output.isTTY === true
  }
}
