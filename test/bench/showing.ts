import { ParserYardstick } from './parser-yardstick.js'
import { realisticMail } from './realistic-mail.js'
import type { Section } from './section.js'
import { sendAll } from './smtp-client.js'
import { Subject } from './subject.js'

const INBOXES = 64
const CONNECTIONS = 20

/** Mails per second from the first one sent to the last one that the API shows. */
export const showing: Section = async ({ plan, engine, profileDir }) => {
  const parser = new ParserYardstick()
  const subject = await Subject.start(profileDir)
  try {
    const inboxes = await subject.createInboxes(INBOXES)
    const [ours, theirs, drains]: [number[], number[], number[]] = [[], [], []]
    const mails = plan.shownMails
    for (let round = 0; round < plan.rounds; round++) {
      theirs.push(await parser.rate(mails / 2))
      const started = performance.now()
      await sendAll({
        port: subject.mayfly.smtpPort,
        connections: CONNECTIONS,
        mails,
        addressOf: (number) => inboxes[number % INBOXES]?.address ?? '',
        sourceOf: (number, to) => realisticMail(round * mails + number, to),
      })
      const accepted = performance.now()
      await subject.untilVisible((round + 1) * mails)
      const visible = performance.now()
      ours.push(mails / ((visible - started) / 1000))
      drains.push((visible - accepted) / 1000)
    }
    return [
      {
        name: 'visible, sustained',
        unit: 'mails/s',
        rounds: ours,
        yardstick: { name: 'mailparser, 2 threads', rounds: theirs },
        ...(engine === 'embedded' ? { reach: { atLeast: 0.8 } } : {}),
      },
      {
        name: 'last 250 to last visible',
        unit: 's',
        rounds: drains,
        note: `After ${mails} mails at full speed.`,
      },
    ]
  } finally {
    await subject.dispose()
    await parser.close()
  }
}
