import { cpuMs } from './cpu-time.js'
import { median, quantile, type Figure } from './figure.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'

const WARM_UP = 50
/** Requests that create one inbox, in each round. */
const SINGLE = 500
const BULK = 10_000

/** From a request that creates an inbox to its 201, one at a time and ten at once; and many in one request. */
export const creating: Section = async ({ plan, engine, profileDir }) => {
  const subject = await Subject.start(profileDir)
  try {
    await subject.createInboxes(WARM_UP)
    const figures: Figure[] = []
    for (const atOnce of [1, 10]) {
      const times: number[] = []
      let left = plan.createdInboxes
      const work = async () => {
        while (left-- > 0) times.push(await creationMs(subject))
      }
      await Promise.all(Array.from({ length: atOnce }, work))
      const name = atOnce === 1 ? 'create inbox' : `create inbox, ${atOnce} at once`
      figures.push(
        { name: `${name}, p50`, unit: 'ms', rounds: [median(times)] },
        {
          name: `${name}, p99`,
          unit: 'ms',
          rounds: [quantile(times, 0.99)],
          target: { atMost: engine === 'embedded' ? 20 : 60 },
        },
      )
    }
    return [...figures, ...(await inBulk(subject, plan.rounds))]
  } finally {
    await subject.dispose()
  }
}

/** What an inbox costs in a bulk request, and how a bulk request delays others. */
async function inBulk(subject: Subject, rounds: number): Promise<Figure[]> {
  const spent = { single: [] as number[], bulk: [] as number[] }
  const p99 = { idle: [] as number[], beside: [] as number[] }
  for (let round = 0; round < rounds; round += 1) {
    const idle: number[] = []
    const single = await cpuMs(subject.mayfly.pids, async () => {
      while (idle.length < SINGLE) idle.push(await creationMs(subject))
    })
    p99.idle.push(quantile(idle, 0.99))
    spent.single.push((single / SINGLE) * 1_000)
    spent.bulk.push(((await cpuMs(subject.mayfly.pids, () => subject.createInBulk(BULK))) / BULK) * 1_000)
    const ended = new AbortController()
    const bulk = subject.createInBulk(BULK).finally(() => ended.abort())
    const beside: number[] = []
    while (!ended.signal.aborted) beside.push(await creationMs(subject))
    await bulk
    p99.beside.push(quantile(beside, 0.99))
  }
  return [
    {
      name: `CPU of an inbox among ${BULK} in one request`,
      unit: 'µs',
      rounds: spent.bulk,
      baseline: { name: 'one request for each', rounds: spent.single },
      target: { atMost: 0.2 },
    },
    {
      name: `create inbox beside a request for ${BULK}, p99`,
      unit: 'ms',
      rounds: p99.beside,
      baseline: { name: 'create inbox, p99', rounds: p99.idle },
      target: { atMost: 5 },
    },
  ]
}

async function creationMs(subject: Subject): Promise<number> {
  const started = performance.now()
  await subject.createInbox()
  return performance.now() - started
}
