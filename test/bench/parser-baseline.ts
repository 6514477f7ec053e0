import { Piscina } from 'piscina'
import { realisticMail } from './realistic-mail.js'

const THREADS = 2
const MAILS_PER_TASK = 32

/** Mails per second of mailparser alone, in two threads. */
export class ParserBaseline {
  private readonly pool = new Piscina<string[], number>({
    filename: new URL('./parsing-thread.js', import.meta.url).href,
    minThreads: THREADS,
    maxThreads: THREADS,
  })

  async rate(mails: number): Promise<number> {
    const sources = Array.from({ length: mails }, (_, number) => realisticMail(number, 'someone@mayfly.test'))
    const tasks: string[][] = []
    for (let at = 0; at < mails; at += MAILS_PER_TASK) tasks.push(sources.slice(at, at + MAILS_PER_TASK))
    const started = performance.now()
    await Promise.all(tasks.map((task) => this.pool.run(task)))
    return mails / ((performance.now() - started) / 1000)
  }

  close(): Promise<void> {
    return this.pool.destroy()
  }
}
