import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { anonymousBytes } from '#libs/runtime/process/metrics.js'
import { startRedis } from '#test/harness/redis.js'
import { cpuMs } from './cpu-time.js'
import { median, timesOf, type Figure } from './figure.js'
import { memoryOf, MIB } from './memory.js'
import type { Section } from './section.js'
import { Subject, type InboxHandle } from './subject.js'

const SMALLEST = 1_000
const BULK = 10_000
const SAMPLE_EVERY_MS = 200
const LIST_READS = 200
const LISTS = {
  'list of 25 inboxes, p50': '/v1/inboxes?limit=25',
  'list of the 25 newest messages, p50': '/v1/messages?limit=25&order=desc',
}

/** A figure of one number of inboxes. The target is a bound on its ratio to that of the smallest number. */
interface Value {
  name: string
  unit: string
  rounds: number[]
  atMost?: number
}

/**
 * What a mail, a list, memory and a start cost with 1,000 inboxes and ten, a hundred times as many, each of which has
 * mail; then the rebuild of the views from the log.
 */
export const manyInboxes: Section = async ({ plan, engine, profileDir, say }) => {
  // A Redis of its own, because its views are emptied.
  const redis = engine === 'distributed' ? await startRedis() : null
  let subject = await Subject.start(profileDir, redis === null ? {} : { REDIS_URL: redis.url })
  try {
    const inboxes: InboxHandle[] = []
    const smallest = new Map<string, number[]>()
    const figures: Figure[] = []
    for (let count = SMALLEST; count <= plan.inboxes; count *= 10) {
      await fill(subject, inboxes, count)
      const values = [
        await costOfMail(subject, inboxes, plan.rounds, plan.manyInboxesMails),
        ...(await costOfLists(subject)),
        await heapOf(subject),
      ]
      const start = await restarted(subject, () => Promise.resolve())
      subject = start.subject
      values.push({ name: 'start until ready', unit: 's', rounds: [start.seconds] })
      for (const { name, unit, rounds, atMost } of values) {
        const baseline = { name: `${SMALLEST} inboxes`, rounds: smallest.get(name) ?? [] }
        const compared =
          count > SMALLEST ? { baseline, ...(atMost === undefined ? {} : { target: { atMost } }) } : {}
        figures.push({ name: `${name}, ${count} inboxes`, unit, rounds, ...compared })
        say(`${count} inboxes, ${name}: ${median(rounds)} ${unit}`)
        if (count === SMALLEST) smallest.set(name, rounds)
      }
    }
    const rebuild = await restarted(subject, (dataDir) =>
      redis === null ? rm(join(dataDir, 'read-model'), { recursive: true }) : emptied(redis.url),
    )
    subject = rebuild.subject
    const name = `rebuild of ${inboxes.length} inboxes`
    return [
      ...figures,
      { name, unit: 's', rounds: [rebuild.seconds] },
      { name: 'memory without files meanwhile', unit: 'MiB', rounds: [rebuild.peakBytes / MIB] },
    ]
  } finally {
    await subject.dispose()
    await redis?.dispose()
  }
}

/** Creates inboxes until there are that many, and sends a mail to each new one. */
async function fill(subject: Subject, inboxes: InboxHandle[], count: number): Promise<void> {
  const added: InboxHandle[] = []
  while (inboxes.length + added.length < count) {
    const missing = count - inboxes.length - added.length
    added.push(...(await subject.createInBulk(Math.min(BULK, missing))))
  }
  await send(subject, added, added.length)
  for (const inbox of added) inboxes.push(inbox)
}

/** Of all processes, from the first mail sent to the last one visible. */
async function costOfMail(
  subject: Subject,
  inboxes: readonly InboxHandle[],
  count: number,
  mails: number,
): Promise<Value> {
  const rounds: number[] = []
  // Neighbours in the list were created one after the other.
  const spread = Array.from({ length: mails }, (_, n) => inboxes[(n * 7_919) % inboxes.length])
  const to = spread.filter((inbox) => inbox !== undefined)
  // The first round warms up and does not count.
  for (let round = 0; round <= count; round += 1) {
    const spent = await cpuMs(subject.mayfly.pids, () => send(subject, to, mails))
    if (round > 0) rounds.push(spent / mails)
  }
  return { name: 'CPU per mail', unit: 'ms', rounds, atMost: 1.2 }
}

/** Resolves once the mails are visible. */
async function send(subject: Subject, to: readonly InboxHandle[], mails: number): Promise<void> {
  await subject.sendMails(to, mails)
  await subject.untilCaughtUp()
}

async function costOfLists(subject: Subject): Promise<Value[]> {
  const values: Value[] = []
  for (const [name, path] of Object.entries(LISTS)) {
    const times = await timesOf(LIST_READS, () => subject.read(path))
    values.push({ name, unit: 'ms', rounds: [median(times)], atMost: 1.5 })
  }
  return values
}

/** Of the process that answers HTTP. */
async function heapOf(subject: Subject): Promise<Value> {
  return { name: 'heap', unit: 'MiB', rounds: [(await memoryOf(subject)).heap / MIB], atMost: 1.5 }
}

/**
 * Starts it again after some work on its data folder. Resolves once the views have caught up, with the time since that
 * work, and the most memory that all processes took together after they listened.
 */
async function restarted(
  subject: Subject,
  work: (dataDir: string) => Promise<void>,
): Promise<{ subject: Subject; seconds: number; peakBytes: number }> {
  let startedMs = 0
  const next = await subject.restartAfter(async (dataDir) => {
    await work(dataDir)
    startedMs = performance.now()
  })
  let peakBytes = 0
  const sample = () => {
    const bytes = next.mayfly.pids.reduce((sum, pid) => sum + (anonymousBytes(pid) ?? NaN), 0)
    peakBytes = Math.max(peakBytes, bytes)
  }
  const timer = setInterval(sample, SAMPLE_EVERY_MS)
  try {
    await next.untilCaughtUp()
    const seconds = (performance.now() - startedMs) / 1_000
    sample()
    return { subject: next, seconds, peakBytes }
  } finally {
    clearInterval(timer)
  }
}

async function emptied(redisUrl: string): Promise<void> {
  const redis = new Redis(redisUrl)
  await redis.flushall()
  redis.disconnect()
}
