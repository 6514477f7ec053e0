import type { Figure } from './figure.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject } from './subject.js'
import { verificationMail } from './verification-mail.js'
import { findWrk, measureReads, type Wrk } from './wrk.js'

const MESSAGES = 25
const CONNECTIONS = 20

/** Lists of 25 messages per second, and the latency of an empty list. */
export const listing: Section = async ({ plan, profileDir, say }) => {
  const wrk = findWrk()
  if (wrk === null) {
    say('skipped: wrk is missing; install it with: apt-get install wrk')
    return []
  }
  const subject = await Subject.start(profileDir)
  try {
    const path = await listOfVerifications(subject)
    const { length: bytes } = await subject.read(path)
    const { url, apiKey } = subject.mayfly
    const load = { apiKey, url: url + path, connections: CONNECTIONS, seconds: plan.readingSeconds }
    const rounds: number[] = []
    // The first round warms up and does not count.
    for (let round = 0; round <= plan.rounds; round++) {
      const { perSecond } = await measureReads(wrk, load)
      if (round > 0) rounds.push(perSecond)
    }
    const list: Figure = {
      name: `list of ${MESSAGES} messages`,
      unit: 'answers/s',
      rounds,
      note: `${Math.round(bytes / 1024)} KiB an answer, ${CONNECTIONS} connections kept open.`,
    }
    return [list, await emptyList(wrk, subject, plan)]
  } finally {
    await subject.dispose()
  }
}

async function listOfVerifications(subject: Subject): Promise<string> {
  const inbox = await subject.createInbox()
  const client = await SmtpClient.open(subject.mayfly.smtpPort)
  for (let number = 0; number < MESSAGES; number++) {
    await client.send(inbox.address, verificationMail(number, inbox.address))
  }
  client.close()
  await subject.untilVisible(MESSAGES)
  return `/v1/inboxes/${inbox.id}/messages?limit=${MESSAGES}`
}

/** The minimum cost of a request with a key. */
async function emptyList(
  wrk: Wrk,
  subject: Subject,
  { rounds, readingSeconds: seconds }: { rounds: number; readingSeconds: number },
): Promise<Figure> {
  const { apiKey } = subject.mayfly
  const url = `${subject.mayfly.url}/v1/inboxes?label=none:none`
  const medians: number[] = []
  for (let round = 0; round < rounds; round++) {
    medians.push((await measureReads(wrk, { apiKey, url, connections: 1, seconds })).medianMs)
  }
  return { name: 'empty list, one connection, p50', unit: 'ms', rounds: medians }
}
