import { barePostRate } from './bare-poster.js'
import { startCountingEndpoint, type CountingEndpoint } from './counting-endpoint.js'
import { median, quantile, type Figure } from './figure.js'
import { memoryOf, MIB, type Memory } from './memory.js'
import type { Plan } from './plan.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'
import { TimedWebhook } from './timed-webhook.js'
import { FanOutInbox } from './webhook-fan-out.js'

/** Connections of the baseline: as many as Mayfly opens to one origin, and for one webhook. */
const CONNECTIONS = { ofOrigin: 100, ofWebhook: 10 }
const DELIVERIES_PER_SECOND = { atLeast: 1_000 }
const DELAY_MS = { atMost: 100 }
/** Enough to last while the latency of other deliveries is measured. */
const BACKLOG_OF_ALL = 40_000
const MEASURED_MAILS = 100
/** Catching up at full speed takes more memory than a few deliveries do, but the same for 100,000 as for a million. */
const FLAT = { atMost: 1.5 }

interface Rates {
  /** Target for the ratio to the baseline. */
  atLeast: number
  ours: readonly number[]
  theirs: readonly number[]
}

interface BacklogRun {
  perSecond: number
  memory: Memory
}

/** Deliveries per second, their latency, and the effect of a backlog on both and on memory. */
export const webhooks: Section = async ({ plan, profileDir, say }) => {
  const { few, many } = plan.dueDeliveries
  const endpoint = await startCountingEndpoint()
  let subject = await Subject.start(profileDir, { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' })
  const timed = await TimedWebhook.register(subject)
  try {
    const fanOut = await FanOutInbox.make(subject, endpoint)
    const all = fanOut.webhooks.length
    const delays = await timed.delays(subject, plan.latencyMails)
    say('measured single mails')
    // The first round warms up and does not count.
    await fanOut.deliverLive(subject, plan.fanOutMails)
    const { body } = await endpoint.read()
    const post = { url: endpoint.url, secret: fanOut.webhooks[0]?.secret ?? '', body, posts: few }
    const live = { atLeast: 0.5, ours: [] as number[], theirs: [] as number[] }
    for (let round = 0; round < plan.rounds; round += 1) {
      live.theirs.push(await barePostRate({ ...post, connections: CONNECTIONS.ofOrigin }))
      live.ours.push(await fanOut.deliverLive(subject, plan.fanOutMails))
    }
    say('measured many mails')
    const runBacklog = async (webhooks: number, count: number) => {
      const started = performance.now()
      const { end, ...again } = await fanOut.deliverBacklog(subject, { webhooks, count, begun: few / 5 })
      subject = again.subject
      say(
        `appended ${count} deliveries; the first ones were made after ${Math.round(performance.now() - started)} ms`,
      )
      return { ...(await measureBacklog(subject, endpoint)), end }
    }
    const fewDue = await runBacklog(1, few)
    await endpoint.untilCount(fewDue.end)
    const bareAlone = await barePostRate({ ...post, connections: CONNECTIONS.ofWebhook })
    const taken = await runBacklog(all, BACKLOG_OF_ALL)
    const besideAll = await timed.delays(subject, MEASURED_MAILS)
    await endpoint.untilCount(taken.end)
    const manyDue = await runBacklog(1, many)
    const besideOne = await timed.delays(subject, MEASURED_MAILS)
    return [
      ...rateFigures(`${all} webhooks`, live, CONNECTIONS.ofOrigin),
      ...rateFigures(
        '1 webhook',
        { atLeast: 0.4, ours: [fewDue.perSecond], theirs: [bareAlone] },
        CONNECTIONS.ofWebhook,
      ),
      ...delayFigures('accepted to delivered', delays),
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

/** Measures over the three seconds that sampling memory takes. */
async function measureBacklog(subject: Subject, endpoint: CountingEndpoint): Promise<BacklogRun> {
  const [before, started] = [(await endpoint.read()).count, performance.now()]
  const memory = await memoryOf(subject)
  const { count } = await endpoint.read()
  return { perSecond: ((count - before) * 1_000) / (performance.now() - started), memory }
}

function rateFigures(to: string, { atLeast, ours, theirs }: Rates, connections: number): Figure[] {
  const delivered = { name: `delivered to ${to}`, unit: 'deliveries/s', rounds: ours }
  const baseline = { name: `bare undici, ${connections} connections`, rounds: theirs }
  return [
    { ...delivered, target: DELIVERIES_PER_SECOND },
    { ...delivered, name: 'the same', baseline, target: { atLeast } },
  ]
}

function delayFigures(name: string, delays: readonly number[]): Figure[] {
  return [
    { name: `${name}, p50`, unit: 'ms', rounds: [median(delays)] },
    { name: `${name}, p99`, unit: 'ms', rounds: [quantile(delays, 0.99)], target: DELAY_MS },
  ]
}

function backlogFigures(
  { few, many }: Plan['dueDeliveries'],
  fewDue: BacklogRun,
  manyDue: BacklogRun,
): Figure[] {
  const compared = (name: string, unit: string, read: (run: BacklogRun) => number): Figure => ({
    name: `${name}, ${many} due`,
    unit,
    rounds: [read(manyDue)],
    baseline: { name: `${few} due`, rounds: [read(fewDue)] },
  })
  const anonymous = ({ memory }: BacklogRun) => (memory.anonymous ?? NaN) / MIB
  return [
    compared('delivered', 'deliveries/s', ({ perSecond }) => perSecond),
    { ...compared('heap', 'MiB', ({ memory }) => memory.heap / MIB), target: FLAT },
    compared('resident memory', 'MiB', ({ memory }) => memory.resident / MIB),
    { ...compared('resident memory without files', 'MiB', anonymous), target: FLAT },
  ]
}
