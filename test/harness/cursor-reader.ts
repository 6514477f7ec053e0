import { call, nextOf, type Answer, type MessageJson, type Target } from './client.js'
import { until } from './until.js'

export interface ReadOptions {
  /**
   * Pages from the oldest; or pages from the newest, and then from the first page's cursor in ascending order; or waits.
   */
  mode: 'asc' | 'desc' | 'wait'
  limit: number
  /** Filter: subjects must contain it. */
  subject: string | null
}

const ANSWERED_WITHIN_MS = 60_000

/** Reads an inbox from cursor to cursor, and records the ids that it has seen. */
export class CursorReader {
  readonly seen: string[] = []
  private cursor: string | null = null
  /** Next page of the descending list; undefined before the first page, null after the last one. */
  private nextDescending: string | null | undefined

  /** `target` is called before each request. Requests are repeated while Mayfly restarts or its views catch up. */
  constructor(
    private readonly target: () => Target,
    private readonly path: string,
    private readonly options: ReadOptions,
  ) {}

  /** Whether it sees messages in the order of their arrival. */
  get isInOrder(): boolean {
    return this.options.mode !== 'desc'
  }

  matches(subject: string | null): boolean {
    return this.options.subject === null || (subject?.includes(this.options.subject) ?? false)
  }

  /** Makes one request. Resolves with false if nothing is left to read. */
  async readNext(): Promise<boolean> {
    if (this.options.mode === 'wait') return this.wait()
    return this.options.mode === 'desc' && this.nextDescending !== null
      ? this.readDescending()
      : this.readAscending()
  }

  async readToEnd(): Promise<void> {
    while (await this.readNext());
  }

  private async wait(): Promise<boolean> {
    const answer = await this.get<MessageJson>(`${this.path}/wait?timeout=0${this.query()}`)
    this.cursor = answer.headers.get('mayfly-cursor')
    if (answer.status === 200) this.seen.push(answer.body.id)
    return answer.status === 200
  }

  private async readAscending(): Promise<boolean> {
    const answer = await this.get<MessageJson[]>(`${this.path}?limit=${this.options.limit}${this.query()}`)
    this.cursor = answer.headers.get('mayfly-cursor')
    return this.take(answer)
  }

  private async readDescending(): Promise<boolean> {
    const first = `${this.path}?order=desc&limit=${this.options.limit}${this.query()}`
    const answer = await this.get<MessageJson[]>(this.nextDescending ?? first)
    this.nextDescending = nextOf(answer)
    // The same on every page: the end of the inbox when the first page was read.
    if (this.nextDescending === null) this.cursor = answer.headers.get('mayfly-cursor')
    this.take(answer)
    return true
  }

  private take(answer: Answer<MessageJson[]>): boolean {
    this.seen.push(...answer.body.map(({ id }) => id))
    return answer.body.length > 0 || nextOf(answer) !== null
  }

  private query(): string {
    const { subject } = this.options
    const from = this.cursor === null ? '' : `&cursor=${this.cursor}`
    return `${from}${subject === null ? '' : `&subject=${subject}`}`
  }

  private async get<Body>(path: string): Promise<Answer<Body>> {
    const answer = await until(
      `an answer to ${path}`,
      async () => {
        // It may be restarting.
        const answer = await call<Body>(this.target(), 'GET', path).catch(() => null)
        return answer === null || answer.status === 503 ? null : answer
      },
      ANSWERED_WITHIN_MS,
    )
    if (answer.status !== 200 && answer.status !== 404) {
      throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    }
    return answer
  }
}
