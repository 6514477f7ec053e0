import { startBombing } from '#test/hostile/bombing.js'
import { visibilityDelays } from '#test/hostile/visibility-delays.js'
import { quantile } from './figure.js'
import type { Section } from './section.js'
import { Subject } from './subject.js'

const CONNECTIONS = 3
const BOMBED_INBOXES = 24
const INBOXES = 8
const MAX_MAILS = 200

/** From the 250 to the first read that finds a small mail of one account, without and with bombs sent to another one. */
export const underBombs: Section = async ({ plan, profileDir }) => {
  const subject = await Subject.start(profileDir)
  try {
    const mails = { mails: Math.min(plan.latencyMails, MAX_MAILS), inboxes: INBOXES }
    const quiet = await visibilityDelays(subject.mayfly, mails)
    const bombing = await startBombing(subject.mayfly, { connections: CONNECTIONS, inboxes: BOMBED_INBOXES })
    const bombed = await visibilityDelays(subject.mayfly, mails).finally(() => bombing.stop())
    return [
      {
        name: 'accepted to visible beside bombs, p99',
        unit: 'ms',
        rounds: [quantile(bombed, 0.99)],
        target: { atMost: 500 },
        note:
          `Without bombs ${quantile(quiet, 0.99).toFixed(0)} ms; with ${bombing.accepted()} of them, ` +
          `sent to another account on ${CONNECTIONS} connections from the same machine, at the median ` +
          `${quantile(bombed, 0.5).toFixed(0)} ms and at most ${Math.max(...bombed).toFixed(0)} ms.`,
      },
    ]
  } finally {
    await subject.dispose()
  }
}
