import type { Figure } from './figure.js'
import { memoryOf, MIB } from './memory.js'
import type { Section } from './section.js'
import { Subject, type InboxHandle } from './subject.js'

const INBOXES = 64

/** Memory after few mails and after many: the views are on disk, so memory should not grow with them. */
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
      baseline: { name: `after ${before}`, rounds: [from / MIB] },
      ...(note === undefined ? {} : { note }),
    })
    const figures = [
      grown('heap', few.heap, many.heap),
      grown(
        'resident memory',
        few.resident,
        many.resident,
        'Includes pages of the database files, which the system reclaims when it needs them.',
      ),
    ]
    if (few.anonymous !== null && many.anonymous !== null) {
      // The same bound for 100,000 mails: memory must not grow with their number.
      const { baseline: _, ...after20000 } = grown('the same', few.anonymous, many.anonymous)
      figures.push(grown('resident memory without files', few.anonymous, many.anonymous), {
        ...after20000,
        target: { atMost: 450 },
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
  await subject.sendMails(inboxes, to - from, from)
  await subject.untilVisible(to)
}
