import { startBareRoute } from './bare-route.js'
import type { Figure } from './figure.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject } from './subject.js'
import { verificationMail } from './verification-mail.js'
import { findWrk, measureReads, type Wrk } from './wrk.js'

const MESSAGES = 25
const CONNECTIONS = 20

/** Lists of 25 messages per second, compared with a bare route that answers the same bytes; and the latency of an empty list. */
export const listing: Section = async ({ plan, engine, profileDir, say }) => {
  const wrk = findWrk()
  if (wrk === null) {
    say('skipped: wrk is missing; install it with: apt-get install wrk')
    return []
  }
  const subject = await Subject.start(profileDir)
  try {
    const path = await listOfVerifications(subject)
    const body = await subject.read(path)
    const bare = await startBareRoute(body)
    try {
      const rounds = { ours: [] as number[], theirs: [] as number[] }
      const load = { apiKey: subject.mayfly.apiKey, connections: CONNECTIONS, seconds: plan.readingSeconds }
      const url = subject.mayfly.url + path
      // The first rounds warm up and do not count.
      for (const warmed of [bare.url, url]) await measureReads(wrk, { ...load, url: warmed })
      for (let round = 0; round < plan.rounds; round++) {
        rounds.theirs.push((await measureReads(wrk, { ...load, url: bare.url })).perSecond)
        rounds.ours.push((await measureReads(wrk, { ...load, url })).perSecond)
      }
      const list: Figure = {
        name: `list of ${MESSAGES} messages`,
        unit: 'answers/s',
        rounds: rounds.ours,
        baseline: { name: 'bare Fastify, same bytes', rounds: rounds.theirs },
        ...(engine === 'embedded' ? { target: { atLeast: 0.4 } } : {}),
        note: `${Math.round(body.length / 1024)} KiB an answer, ${CONNECTIONS} connections kept open.`,
      }
      return [list, await emptyList(wrk, subject, plan)]
    } finally {
      await bare.close()
    }
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

/** The minimum cost of a request with a key. Requests without a key are delayed, so there is no baseline. */
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
