import { until } from '#test/harness/until.js'
import { startBareSink, type BareSink } from './bare-sink.js'
import { cpuSpent, cpuTimeOf, type CpuSpent } from './cpu-time.js'
import type { Figure } from './figure.js'
import { findPostfix, sourceRate, withSink, type Postfix } from './postfix.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'

const COUNTED_WITHIN_MS = 300_000
/** The sink uses little CPU time, which is counted in clock ticks, so it gets more mails. */
const SINK_FACTOR = 5

/** Microseconds per mail. */
interface Rounds {
  all: number[]
  busiest: number[]
}

/**
 * CPU time per mail of all processes and threads, from the first connection until the mails are visible and counted,
 * compared with a server that discards them.
 */
export const cpu: Section = async ({ plan, engine, profileDir, say }) => {
  const postfix = findPostfix()
  if (postfix === null || cpuTimeOf([process.pid]) === null) {
    say('skipped: it needs Linux, and smtp-source and smtp-sink: apt-get install postfix')
    return []
  }
  const sink = await startBareSink()
  const measured = await Measured.start(await Subject.start(profileDir), postfix)
  const embedded =
    engine === 'embedded' ? null : await Measured.start(await Subject.start(null, {}, 'embedded'), postfix)
  try {
    const mails = plan.acceptedMails
    const rates = { ours: [] as number[], theirs: [] as number[] }
    const ofSink: Rounds = { all: [], busiest: [] }
    // The first round warms up and does not count.
    for (let round = 0; round <= plan.rounds; round++) {
      const smtpSink = await withSink(postfix, (port) => sourceRate(postfix, loadOf(mails, port)))
      const [rate, spent] = await sendToSink(postfix, sink, SINK_FACTOR * mails)
      await measured.round(mails, round > 0)
      await embedded?.round(mails, round > 0)
      if (round === 0) continue
      rates.theirs.push(smtpSink)
      rates.ours.push(rate)
      record(ofSink, spent, SINK_FACTOR * mails)
    }
    const ofMayfly = (name: string, rounds: number[], atMost: number): Figure => ({
      name,
      unit: 'µs',
      rounds,
      baseline: { name: 'bare node:net sink', rounds: ofSink.all },
      ...(engine === 'embedded' ? { target: { atMost } } : {}),
    })
    const figures: Figure[] = [
      ofMayfly('CPU per mail until visible and counted', measured.rounds.all, 7),
      ofMayfly('the same, busiest thread', measured.rounds.busiest, 2.5),
      {
        name: 'bare node:net sink, kept connections',
        unit: 'mails/s',
        rounds: rates.ours,
        baseline: { name: 'smtp-sink', rounds: rates.theirs },
      },
    ]
    if (embedded !== null) {
      figures.push({
        name: 'CPU per mail of all processes',
        unit: 'µs',
        rounds: measured.rounds.all,
        baseline: { name: 'embedded', rounds: embedded.rounds.all },
        target: { atMost: 1.3 },
      })
    }
    return figures
  } finally {
    await embedded?.subject.dispose()
    await measured.subject.dispose()
    await sink.close()
  }
}

/** A Mayfly and the CPU time of its mails. */
class Measured {
  readonly rounds: Rounds = { all: [], busiest: [] }
  private sent = 0

  private constructor(
    readonly subject: Subject,
    private readonly postfix: Postfix,
    private readonly address: string,
  ) {}

  static async start(subject: Subject, postfix: Postfix): Promise<Measured> {
    const { address } = await subject.createInbox()
    return new Measured(subject, postfix, address)
  }

  /** Sends that many mails and waits until they are visible and counted. */
  async round(mails: number, isRecorded: boolean): Promise<void> {
    const { subject } = this
    const { pids, smtpPort } = subject.mayfly
    const spent = await spentBy(pids, async () => {
      await sourceRate(this.postfix, loadOf(mails, smtpPort, this.address))
      this.sent += mails
      await subject.untilVisible(this.sent)
      const isCounted = async () => (await subject.countedMails()) >= this.sent
      await until(`${this.sent} mails to be counted`, isCounted, COUNTED_WITHIN_MS)
    })
    if (isRecorded) record(this.rounds, spent, mails)
  }
}

async function sendToSink(
  postfix: Postfix,
  { port, pid }: BareSink,
  mails: number,
): Promise<[rate: number, spent: CpuSpent]> {
  let rate = NaN
  const spent = await spentBy([pid], async () => {
    rate = await sourceRate(postfix, loadOf(mails, port))
  })
  return [rate, spent]
}

async function spentBy(pids: readonly number[], work: () => Promise<void>): Promise<CpuSpent> {
  const before = cpuTimeOf(pids)
  await work()
  const after = cpuTimeOf(pids)
  if (before === null || after === null) throw new Error('a measured process has ended')
  return cpuSpent(before, after)
}

function loadOf(mails: number, port: number, to = 'anybody@bare.example') {
  return { mails, port, to, isKept: true }
}

function record(rounds: Rounds, { all, busiestThread }: CpuSpent, mails: number): void {
  rounds.all.push((all * 1_000) / mails)
  rounds.busiest.push((busiestThread * 1_000) / mails)
}
