import { until } from '#test/harness/until.js'
import { cpuSpent, cpuTimeOf } from './cpu-time.js'
import type { Figure } from './figure.js'
import { findPostfix, sourceRate, type Postfix } from './postfix.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'

const COUNTED_WITHIN_MS = 300_000

/** CPU time per mail of all processes and threads, from the first connection until the mails are visible and counted. */
export const cpu: Section = async ({ plan, engine, profileDir, say }) => {
  const postfix = findPostfix()
  if (postfix === null || cpuTimeOf([process.pid]) === null) {
    say('skipped: it needs Linux, and smtp-source: apt-get install postfix')
    return []
  }
  const measured = await Measured.start(await Subject.start(profileDir), postfix)
  const embedded =
    engine === 'embedded' ? null : await Measured.start(await Subject.start(null, {}, 'embedded'), postfix)
  try {
    // The first round warms up and does not count.
    for (let round = 0; round <= plan.rounds; round++) {
      await measured.round(plan.acceptedMails, round > 0)
      await embedded?.round(plan.acceptedMails, round > 0)
    }
    const { all, busiest } = measured.rounds
    const figures: Figure[] = [
      {
        name: 'CPU per mail until visible and counted',
        unit: 'µs',
        rounds: all,
        ...(embedded === null
          ? {}
          : { baseline: { name: 'embedded', rounds: embedded.rounds.all }, target: { atMost: 1.3 } }),
      },
      { name: 'the same, busiest thread', unit: 'µs', rounds: busiest },
    ]
    return figures
  } finally {
    await embedded?.subject.dispose()
    await measured.subject.dispose()
  }
}

/** A Mayfly and the CPU time of its mails, in microseconds per mail. */
class Measured {
  readonly rounds = { all: [] as number[], busiest: [] as number[] }
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
    const { subject, rounds } = this
    const { pids, smtpPort } = subject.mayfly
    const before = cpuTimeOf(pids)
    await sourceRate(this.postfix, { mails, port: smtpPort, to: this.address, isKept: true })
    this.sent += mails
    await subject.untilVisible(this.sent)
    const isCounted = async () => (await subject.countedMails()) >= this.sent
    await until(`${this.sent} mails to be counted`, isCounted, COUNTED_WITHIN_MS)
    const after = cpuTimeOf(pids)
    if (before === null || after === null) throw new Error('a measured process has ended')
    if (!isRecorded) return
    const spent = cpuSpent(before, after)
    rounds.all.push((spent.all * 1_000) / mails)
    rounds.busiest.push((spent.busiestThread * 1_000) / mails)
  }
}
