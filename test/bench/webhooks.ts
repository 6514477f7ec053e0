import { barePostRate } from './bare-poster.js'
import { startCountingEndpoint, type CountingEndpoint } from './counting-endpoint.js'
import { median, quantile, type Figure } from './figure.js'
import { memoryOf, MIB, type Memory } from './memory.js'
import type { Plan } from './plan.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'
import { TimedWebhook } from './timed-webhook.js'
import { ToldInbox } from './told-inbox.js'

/** Of the yardstick: to one origin, and for one webhook, whose places they are. */
const CONNECTIONS = { ofOrigin: 100, ofWebhook: 10 }
const DELIVERIES_PER_SECOND = { atLeast: 1_000 }
const DELAY_MS = { atMost: 100 }
/** Enough to last for the look at what is told besides. */
const BESIDE_ALL = 40_000
const BESIDE_MAILS = 100
/** Catching up at full speed takes memory, the same for 100,000 as for a million, but more than for a few. */
const FLAT = { atMost: 1.5 }

interface Rates {
  /** Of the yardstick. */
  atLeast: number
  ours: readonly number[]
  theirs: readonly number[]
}

interface Working {
  perSecond: number
  memory: Memory
}

/** Deliveries a second, how soon they begin, and what a backlog does to both and to memory. */
export const webhooks: Section = async ({ plan, profileDir, say }) => {
  const { few, many } = plan.dueDeliveries
  const endpoint = await startCountingEndpoint()
  let subject = await Subject.start(profileDir, { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' })
  const timed = await TimedWebhook.register(subject)
  try {
    const told = await ToldInbox.make(subject, endpoint)
    const all = told.webhooks.length
    const delays = await timed.delays(subject, plan.latencyMails)
    say('told of mails one by one')
    // The first round meets code that has not run before.
    await told.tellLive(subject, plan.toldMails)
    const { body } = await endpoint.look()
    const post = { url: endpoint.url, secret: told.webhooks[0]?.secret ?? '', body, posts: few }
    const live = { atLeast: 0.5, ours: [] as number[], theirs: [] as number[] }
    for (let round = 0; round < plan.rounds; round += 1) {
      live.theirs.push(await barePostRate({ ...post, connections: CONNECTIONS.ofOrigin }))
      live.ours.push(await told.tellLive(subject, plan.toldMails))
    }
    say('told of many mails')
    const working = async (webhooks: number, count: number) => {
      const started = performance.now()
      const { end, ...again } = await told.tellAgain(subject, { webhooks, count, begun: few / 5 })
      subject = again.subject
      say(`asked for ${count}, of which some are told after ${Math.round(performance.now() - started)} ms`)
      return { ...(await workingOff(subject, endpoint)), end }
    }
    const fewDue = await working(1, few)
    await endpoint.untilCount(fewDue.end)
    const bareAlone = await barePostRate({ ...post, connections: CONNECTIONS.ofWebhook })
    const taken = await working(all, BESIDE_ALL)
    const besideAll = await timed.delays(subject, BESIDE_MAILS)
    await endpoint.untilCount(taken.end)
    const manyDue = await working(1, many)
    const besideOne = await timed.delays(subject, BESIDE_MAILS)
    return [
      ...rateFigures(`${all} webhooks`, live, CONNECTIONS.ofOrigin),
      ...rateFigures(
        '1 webhook',
        { atLeast: 0.4, ours: [fewDue.perSecond], theirs: [bareAlone] },
        CONNECTIONS.ofWebhook,
      ),
      ...delayFigures('accepted to told', delays),
      ...delayFigures(`the same, ${many} due to another webhook`, besideOne),
      ...delayFigures(`the same, more due to ${all} others than is begun at once`, besideAll),
      ...backlogFigures(plan.dueDeliveries, fewDue, manyDue),
    ]
  } finally {
    await subject.dispose()
    await timed.close()
    await endpoint.close()
  }
}

/** Over the three seconds that looking at memory takes. */
async function workingOff(subject: Subject, endpoint: CountingEndpoint): Promise<Working> {
  const [before, started] = [(await endpoint.look()).count, performance.now()]
  const memory = await memoryOf(subject)
  const { count } = await endpoint.look()
  return { perSecond: ((count - before) * 1_000) / (performance.now() - started), memory }
}

function rateFigures(to: string, { atLeast, ours, theirs }: Rates, connections: number): Figure[] {
  const delivered = { name: `delivered to ${to}`, unit: 'deliveries/s', rounds: ours }
  const yardstick = { name: `bare undici, ${connections} connections`, rounds: theirs }
  return [
    { ...delivered, reach: DELIVERIES_PER_SECOND },
    { ...delivered, name: 'the same', yardstick, reach: { atLeast } },
  ]
}

function delayFigures(name: string, delays: readonly number[]): Figure[] {
  return [
    { name: `${name}, p50`, unit: 'ms', rounds: [median(delays)] },
    { name: `${name}, p99`, unit: 'ms', rounds: [quantile(delays, 0.99)], reach: DELAY_MS },
  ]
}

function backlogFigures({ few, many }: Plan['dueDeliveries'], before: Working, behind: Working): Figure[] {
  const beside = (name: string, unit: string, read: (working: Working) => number): Figure => ({
    name: `${name}, ${many} due`,
    unit,
    rounds: [read(behind)],
    yardstick: { name: `${few} due`, rounds: [read(before)] },
  })
  const anonymous = ({ memory }: Working) => (memory.anonymous ?? NaN) / MIB
  return [
    beside('delivered', 'deliveries/s', ({ perSecond }) => perSecond),
    { ...beside('heap', 'MiB', ({ memory }) => memory.heap / MIB), reach: FLAT },
    beside('resident memory', 'MiB', ({ memory }) => memory.resident / MIB),
    { ...beside('resident memory without files', 'MiB', anonymous), reach: FLAT },
  ]
}
