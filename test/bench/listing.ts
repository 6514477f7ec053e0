import { startBareRoute } from './bare-route.js'
import type { Figure } from './figure.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject } from './subject.js'
import { verificationMail } from './verification-mail.js'
import { findWrk, readAgainAndAgain, type Wrk } from './wrk.js'

const MESSAGES = 25
const CONNECTIONS = 20

/** Lists of 25 messages per second, beside a bare route that answers with the same bytes; and the time of an empty list. */
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
      // The first ones meet code that has not run before.
      for (const warmed of [bare.url, url]) await readAgainAndAgain(wrk, { ...load, url: warmed })
      for (let round = 0; round < plan.rounds; round++) {
        rounds.theirs.push((await readAgainAndAgain(wrk, { ...load, url: bare.url })).perSecond)
        rounds.ours.push((await readAgainAndAgain(wrk, { ...load, url })).perSecond)
      }
      const list: Figure = {
        name: `list of ${MESSAGES} messages`,
        unit: 'answers/s',
        rounds: rounds.ours,
        yardstick: { name: 'bare Fastify, same bytes', rounds: rounds.theirs },
        ...(engine === 'embedded' ? { reach: { atLeast: 0.4 } } : {}),
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

/** The least that a request with a key costs. Those without one are spaced out, so there is nothing to compare it with. */
async function emptyList(
  wrk: Wrk,
  subject: Subject,
  { rounds, readingSeconds: seconds }: { rounds: number; readingSeconds: number },
): Promise<Figure> {
  const { apiKey } = subject.mayfly
  const url = `${subject.mayfly.url}/v1/inboxes?label=none:none`
  const medians: number[] = []
  for (let round = 0; round < rounds; round++) {
    medians.push((await readAgainAndAgain(wrk, { apiKey, url, connections: 1, seconds })).medianMs)
  }
  return { name: 'empty list, one connection, p50', unit: 'ms', rounds: medians }
}
