import type { Figure } from './figure.js'
import { findPostfix, sourceRate } from './postfix.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'

/** Mails durably accepted per second, on reused connections and with one connection per mail. */
export const accepting: Section = async ({ plan, profileDir, say }) => {
  const postfix = findPostfix()
  if (postfix === null) {
    say('skipped: smtp-source is missing; install it with: apt-get install postfix')
    return []
  }
  const subject = await Subject.start(profileDir)
  try {
    const { address } = await subject.createInbox()
    const { smtpPort } = subject.mayfly
    const figures: Figure[] = []
    let sent = 0
    for (const isKept of [true, false]) {
      const rounds: number[] = []
      for (let round = 0; round < plan.rounds; round++) {
        const mails = plan.acceptedMails
        rounds.push(await sourceRate(postfix, { port: smtpPort, to: address, mails, isKept }))
        sent += mails
        // Mail that is still being parsed would slow the next round.
        await subject.untilVisible(sent)
      }
      const name = isKept ? 'accepted, kept connections' : 'accepted, a connection per mail'
      figures.push({ name, unit: 'mails/s', rounds })
    }
    return figures
  } finally {
    await subject.dispose()
  }
}
