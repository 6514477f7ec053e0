import type { Section } from './section.js'
import { Subject } from './subject.js'

const INBOXES = 64

/** Mails per second, from the first mail sent until the API shows the last one. */
export const showing: Section = async ({ plan, profileDir }) => {
  const subject = await Subject.start(profileDir)
  try {
    const inboxes = await subject.createInboxes(INBOXES)
    const [rates, drains]: [number[], number[]] = [[], []]
    const mails = plan.shownMails
    for (let round = 0; round < plan.rounds; round++) {
      const started = performance.now()
      await subject.sendMails(inboxes, mails, round * mails)
      const accepted = performance.now()
      await subject.untilVisible((round + 1) * mails)
      const visible = performance.now()
      rates.push(mails / ((visible - started) / 1000))
      drains.push((visible - accepted) / 1000)
    }
    return [
      { name: 'visible, sustained', unit: 'mails/s', rounds: rates },
      {
        name: 'last 250 to last visible',
        unit: 's',
        rounds: drains,
        note: `After ${mails} mails at full speed.`,
      },
    ]
  } finally {
    await subject.dispose()
  }
}
