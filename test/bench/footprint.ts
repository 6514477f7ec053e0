import { setTimeout as pause } from 'node:timers/promises'
import { anonymousBytes } from './anonymous-bytes.js'
import type { Figure } from './figure.js'
import { realisticMail } from './realistic-mail.js'
import type { Section } from './section.js'
import { sendAll } from './smtp-client.js'
import { Subject, type InboxHandle } from './subject.js'

const INBOXES = 64
const SAMPLES = 10
const SAMPLE_EVERY_MS = 300
const MIB = 1024 * 1024

interface Memory {
  heap: number
  resident: number
  /** Resident memory that is no file's: Linux alone tells it apart. */
  anonymous: number | null
}

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
      figures.push(grown('resident memory without files', few.anonymous, many.anonymous))
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

/** The least of several looks: what a collection is about to free is not kept. */
async function memoryOf(subject: Subject): Promise<Memory> {
  const looks: Memory[] = []
  for (let look = 0; look < SAMPLES; look++) {
    await pause(SAMPLE_EVERY_MS)
    looks.push({
      heap: await subject.metric('nodejs_heap_size_used_bytes'),
      resident: await subject.metric('process_resident_memory_bytes'),
      anonymous: anonymousBytes(subject.mayfly.pid),
    })
  }
  const least = (read: (look: Memory) => number) => Math.min(...looks.map(read))
  const isKnown = looks.every(({ anonymous }) => anonymous !== null)
  return {
    heap: least(({ heap }) => heap),
    resident: least(({ resident }) => resident),
    anonymous: isKnown ? least(({ anonymous }) => anonymous ?? Infinity) : null,
  }
}
