import { Mayfly, type Inbox } from '#clients/typescript/src/mayfly.js'
import { signIn } from '#test/harness/console.js'
import { until } from '#test/harness/until.js'
import { cpuTimeOf } from './cpu-time.js'
import type { Figure } from './figure.js'
import type { Plan } from './plan.js'
import type { SectionContext } from './section.js'
import type { Subject } from './subject.js'

/*
 * What open pages of the console cost the server. Half of them show all mail, the others an inbox.
 */

const CONSOLES = 200
/** An account has at most 50 sessions. */
const PER_SESSION = 5
/** As in the console: the newest inboxes are read again, and a token of ten minutes is renewed a minute before its end. */
const LISTS = [
  { limit: 10, everyMs: 15_000 },
  { limit: 100, everyMs: 60_000 },
] as const
const RENEWED_EVERY_MS = 9 * 60_000
const REQUESTS = 6_000
const AT_ONCE = 10
const OPEN_WITHIN_MS = 60_000

/** CPU time of the server per request of API clients, beside open consoles and without them. */
export async function cpuBesideConsoles(
  subject: Subject,
  { rounds }: Plan,
  say: SectionContext['say'],
): Promise<Figure[]> {
  if (cpuTimeOf([process.pid]) === null) {
    say('CPU time is not measured: it needs Linux')
    return []
  }
  const costs = { beside: [] as number[], alone: [] as number[] }
  // The first round warms up and does not count.
  for (let round = 0; round <= rounds; round += 1) {
    const alone = await cpuPerRequest(subject)
    const consoles = await OpenConsoles.open(subject)
    const beside = await cpuPerRequest(subject)
    await consoles.close()
    if (round === 0) continue
    costs.alone.push(alone)
    costs.beside.push(beside)
  }
  return [
    {
      name: `CPU per API request beside ${CONSOLES} open consoles`,
      unit: 'µs',
      rounds: costs.beside,
      baseline: { name: 'none open', rounds: costs.alone },
      target: { atMost: 1.3 },
    },
  ]
}

/** Microseconds of all threads. A third of the requests create an inbox, the others read it and its messages. */
async function cpuPerRequest(subject: Subject): Promise<number> {
  const { pids } = subject.mayfly
  let left = REQUESTS / 3
  const work = async () => {
    while (left-- > 0) {
      const { id } = await subject.createInbox()
      await subject.read(`/v1/inboxes/${id}`)
      await subject.read(`/v1/inboxes/${id}/messages`)
    }
  }
  const before = cpuTimeOf(pids)
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  const after = cpuTimeOf(pids)
  if (before === null || after === null) throw new Error('the server has ended')
  return ((after.all - before.all) * 1_000) / REQUESTS
}

/** The requests of open pages, without the pages. */
class OpenConsoles {
  private readonly aborter = new AbortController()
  private readonly streams: Promise<unknown>[] = []
  private readonly timers: NodeJS.Timeout[] = []

  private constructor(private readonly subject: Subject) {}

  static async open(subject: Subject): Promise<OpenConsoles> {
    const { mayfly } = subject
    const consoles = new OpenConsoles(subject)
    const inbox = await subject.createInbox()
    const sessions = await Promise.all(Array.from({ length: CONSOLES / PER_SESSION }, () => signIn(mayfly)))
    for (let index = 0; index < CONSOLES; index += 1) {
      const session = sessions[index % sessions.length]
      if (session === undefined) throw new Error('there is no session')
      const api = new Mayfly(await session.target())
      consoles.repeat(RENEWED_EVERY_MS, index, () => session.target())
      await consoles.showList(api, index)
      if (index % 2 === 1) await consoles.showInbox(await api.inboxes.get(inbox.id))
    }
    const areAllOpen = async () => (await subject.metric('mayfly_open_streams')) === 1.5 * CONSOLES
    await until('every stream', areAllOpen, OPEN_WITHIN_MS)
    return consoles
  }

  /** Ends them. Resolves once their streams are closed. */
  async close(): Promise<void> {
    for (const timer of this.timers) clearTimeout(timer)
    this.aborter.abort()
    await Promise.allSettled(this.streams)
    const areAllClosed = async () => (await this.subject.metric('mayfly_open_streams')) === 0
    await until('every stream to end', areAllClosed, OPEN_WITHIN_MS)
  }

  private async showList(api: Mayfly, index: number): Promise<void> {
    const since = await api.messages.cursor()
    this.follow(api.messages.events({ since, signal: this.aborter.signal }))
    for (const { limit, everyMs } of LISTS)
      this.repeat(everyMs, index, () => api.inboxes.list({ state: 'active', limit }))
  }

  private async showInbox(inbox: Inbox): Promise<void> {
    const since = await inbox.cursor()
    this.follow(inbox.events({ since, signal: this.aborter.signal }))
  }

  private follow(events: AsyncIterable<unknown>): void {
    const iterator = events[Symbol.asyncIterator]()
    const read = async () => {
      while ((await iterator.next()).done !== true);
    }
    this.streams.push(read())
  }

  /** Repeats a request. The pages do so at different times. */
  private repeat(everyMs: number, index: number, send: () => Promise<unknown>): void {
    const start = () => {
      void send()
      this.timers.push(setInterval(() => void send(), everyMs))
    }
    this.timers.push(setTimeout(start, (everyMs * index) / CONSOLES))
  }
}
