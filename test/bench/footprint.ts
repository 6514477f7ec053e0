import type { Figure } from './figure.js'
import { memoryOf, MIB } from './memory.js'
import { realisticMail } from './realistic-mail.js'
import type { Section } from './section.js'
import { sendAll } from './smtp-client.js'
import { Subject, type InboxHandle } from './subject.js'

const INBOXES = 64

/** Memory after few mails and after many: the views are on disk, so it should not grow with them. */
export const footprint: Section = async ({ plan, profileDir }) => {
  const subject = await Subject.start(profileDir)
  try {
    const inboxes = await subject.createInboxes(INBOXES)
    const { before, after } = plan.memoryMails
    await send(subject, inboxes, 0, before)
    const few = await memoryOf(subject)
    await send(subject, inboxes, before, after)
    const many = await memoryOf(subject)
    const grown = (name: string, from: number, to: number, note?: string): Figure => ({
      name: `${name} after ${after} mails`,
      unit: 'MiB',
      rounds: [to / MIB],
      yardstick: { name: `after ${before}`, rounds: [from / MIB] },
      ...(note === undefined ? {} : { note }),
    })
    const figures = [
      grown('heap', few.heap, many.heap),
      grown(
        'resident memory',
        few.resident,
        many.resident,
        'Counts pages of the database files, which the system takes back when it needs them.',
      ),
    ]
    if (few.anonymous !== null && many.anonymous !== null) {
      // Of 100,000 mails too: it must not grow with them.
      const { yardstick: _, ...after20000 } = grown('the same', few.anonymous, many.anonymous)
      figures.push(grown('resident memory without files', few.anonymous, many.anonymous), {
        ...after20000,
        reach: { atMost: 450 },
      })
    }
    return figures
  } finally {
    await subject.dispose()
  }
}

async function send(
  subject: Subject,
  inboxes: readonly InboxHandle[],
  from: number,
  to: number,
): Promise<void> {
  await sendAll({
    port: subject.mayfly.smtpPort,
    connections: 20,
    mails: to - from,
    addressOf: (number) => inboxes[number % inboxes.length]?.address ?? '',
    sourceOf: (number, address) => realisticMail(from + number, address),
  })
  await subject.untilVisible(to)
}
