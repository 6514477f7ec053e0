import type { Figure } from './figure.js'
import { findPostfix, sourceRate, withSink, type Postfix } from './postfix.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'

const TARGETS = { embedded: { kept: 0.25, single: 0.3 }, distributed: { kept: 0.2, single: 0.2 } }

/** Mails durably accepted per second, on reused connections and with one connection per mail. */
export const accepting: Section = async ({ plan, engine, profileDir, say }) => {
  const postfix = findPostfix()
  if (postfix === null) {
    say('skipped: smtp-source and smtp-sink are missing; install them with: apt-get install postfix')
    return []
  }
  const subject = await Subject.start(profileDir)
  try {
    const { address } = await subject.createInbox()
    const { smtpPort } = subject.mayfly
    const figures: Figure[] = []
    let sent = 0
    for (const isKept of [true, false]) {
      const [ours, theirs]: [number[], number[]] = [[], []]
      for (let round = 0; round < plan.rounds; round++) {
        const load = { mails: plan.acceptedMails, isKept, to: address }
        theirs.push(await sinkRate(postfix, load))
        ours.push(await sourceRate(postfix, { ...load, port: smtpPort }))
        sent += plan.acceptedMails
        // Mail that is still being parsed would slow the next round.
        await subject.untilVisible(sent)
      }
      figures.push({
        name: isKept ? 'accepted, kept connections' : 'accepted, a connection per mail',
        unit: 'mails/s',
        rounds: ours,
        baseline: { name: 'smtp-sink', rounds: theirs },
        target: { atLeast: TARGETS[engine][isKept ? 'kept' : 'single'] },
      })
    }
    return figures
  } finally {
    await subject.dispose()
  }
}

function sinkRate(postfix: Postfix, load: { mails: number; isKept: boolean; to: string }): Promise<number> {
  return withSink(postfix, (port) => sourceRate(postfix, { ...load, port }))
}
