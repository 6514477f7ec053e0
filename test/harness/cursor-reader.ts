import { call, nextOf, type Answer, type MessageJson, type Target } from './client.js'
import { until } from './until.js'

/** How an inbox is read. */
export interface Reading {
  /** Page by page from the oldest on, from the newest down and then from where it began on, or wait by wait. */
  way: 'asc' | 'desc' | 'wait'
  limit: number
  /** What subjects must contain. */
  subject: string | null
}

const ANSWERED_WITHIN_MS = 60_000

/** Goes through an inbox from cursor to cursor, and keeps what it was shown. */
export class CursorReader {
  readonly seen: string[] = []
  private cursor: string | null = null
  /** Where the descending list goes on; undefined before its first page, null behind its last. */
  private down: string | null | undefined

  /** `target` is asked before each request, which is repeated while it is not up or its views catch up. */
  constructor(
    private readonly target: () => Target,
    private readonly path: string,
    private readonly reading: Reading,
  ) {}

  /** Whether it sees messages in the order in which they came. */
  get isInOrder(): boolean {
    return this.reading.way !== 'desc'
  }

  wants(subject: string | null): boolean {
    return this.reading.subject === null || (subject?.includes(this.reading.subject) ?? false)
  }

  /** One request; resolves with whether there was anything new, or may be. */
  async goOn(): Promise<boolean> {
    if (this.reading.way === 'wait') return this.waitOn()
    return this.reading.way === 'desc' && this.down !== null ? this.goDown() : this.goUp()
  }

  /** Resolves once nothing is left to see. */
  async toTheEnd(): Promise<void> {
    while (await this.goOn());
  }

  private async waitOn(): Promise<boolean> {
    const answer = await this.ask<MessageJson>(`${this.path}/wait?timeout=0${this.query()}`)
    this.cursor = answer.headers.get('mayfly-cursor')
    if (answer.status === 200) this.seen.push(answer.body.id)
    return answer.status === 200
  }

  private async goUp(): Promise<boolean> {
    const answer = await this.ask<MessageJson[]>(`${this.path}?limit=${this.reading.limit}${this.query()}`)
    this.cursor = answer.headers.get('mayfly-cursor')
    return this.take(answer)
  }

  private async goDown(): Promise<boolean> {
    const first = `${this.path}?order=desc&limit=${this.reading.limit}${this.query()}`
    const answer = await this.ask<MessageJson[]>(this.down ?? first)
    this.down = nextOf(answer)
    // Every page has it: where the inbox ended as the first one read it.
    if (this.down === null) this.cursor = answer.headers.get('mayfly-cursor')
    this.take(answer)
    return true
  }

  private take(answer: Answer<MessageJson[]>): boolean {
    this.seen.push(...answer.body.map(({ id }) => id))
    return answer.body.length > 0 || nextOf(answer) !== null
  }

  private query(): string {
    const { subject } = this.reading
    const from = this.cursor === null ? '' : `&cursor=${this.cursor}`
    return `${from}${subject === null ? '' : `&subject=${subject}`}`
  }

  private async ask<Body>(path: string): Promise<Answer<Body>> {
    const answer = await until(
      `an answer to ${path}`,
      async () => {
        // It may just be restarting.
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
