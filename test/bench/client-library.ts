import { setTimeout as pause } from 'node:timers/promises'
import { Mayfly, type Inbox } from '#clients/typescript/src/mayfly.js'
import { until } from '#test/harness/until.js'
import { median, quantile } from './figure.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject } from './subject.js'
import { verificationMail } from './verification-mail.js'

const CALLS = 500
const CALL_ROUNDS = 5
const EVERY_MS = 50
const WARM_UP = 20
const OPEN_WITHIN_MS = 60_000
const WAIT_MS = 600_000
/** Inboxes that are created at once. */
const AT_ONCE = 10

/** The TypeScript client in one process: the cost of a call, and the time until one of many waits ends. */
export const clientLibrary: Section = async ({ plan, profileDir }) => {
  const subject = await Subject.start(profileDir)
  const { url, apiKey, smtpPort } = subject.mayfly
  const mayfly = new Mayfly({ url, apiKey })
  const smtp = await SmtpClient.open(smtpPort)
  try {
    const calls: number[] = []
    const fetches: number[] = []
    for (let round = -1; round < CALL_ROUNDS; round += 1) {
      const call = await medianTime(() => mayfly.account())
      const bare = await medianTime(() => bareFetch(`${url}/v1/account`, apiKey))
      // The first round warms up.
      if (round < 0) continue
      calls.push(call)
      fetches.push(bare)
    }
    const waits = await wakeUps(subject, mayfly, smtp, plan)
    return [
      {
        name: 'call of the TypeScript client, p50',
        unit: 'ms',
        rounds: calls,
        baseline: { name: 'bare fetch', rounds: fetches },
      },
      {
        name: 'the same, more than bare fetch',
        unit: 'ms',
        rounds: [median(calls) - median(fetches)],
        target: { atMost: 0.2 },
      },
      { name: `accepted to returned, ${plan.waiters} waits, p50`, unit: 'ms', rounds: [median(waits)] },
      {
        name: `accepted to returned, ${plan.waiters} waits, p99`,
        unit: 'ms',
        rounds: [quantile(waits, 0.99)],
        target: { atMost: 20 },
      },
    ]
  } finally {
    smtp.close()
    await subject.dispose()
  }
}

/** The median time of calls, one after the other, in milliseconds. */
async function medianTime(call: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let count = 0; count < CALLS; count += 1) {
    const started = performance.now()
    await call()
    times.push(performance.now() - started)
  }
  return median(times)
}

async function bareFetch(url: string, apiKey: string): Promise<unknown> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${apiKey}` } })
  return response.json()
}

/**
 * Milliseconds from a 250 until the client returns the message, at twenty mails per second: each time to another one of
 * many inboxes, which all have a wait.
 */
async function wakeUps(
  subject: Subject,
  mayfly: Mayfly,
  smtp: SmtpClient,
  { waiters, wakeUps: count }: { waiters: number; wakeUps: number },
): Promise<number[]> {
  const inboxes: Inbox[] = []
  while (inboxes.length < waiters) {
    inboxes.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => mayfly.inboxes.create()))))
  }
  const aborter = new AbortController()
  const { signal } = aborter
  const wait = (inbox: Inbox, since?: string) => inbox.waitForMessage({ since, timeoutMs: WAIT_MS, signal })
  const waits = inboxes.map((inbox) => ({ inbox, message: wait(inbox) }))
  const isEachOpen = async () => (await subject.metric('mayfly_open_waits')) === waiters
  await until('every wait', isEachOpen, OPEN_WITHIN_MS)
  const delays: number[] = []
  for (let number = -WARM_UP; number < count; number += 1) {
    const slot = performance.now()
    const waiting = waits[(number + WARM_UP) % waits.length]
    if (waiting === undefined) throw new Error('there is no wait')
    const { address } = waiting.inbox
    await smtp.send(address, verificationMail(number + WARM_UP, address))
    const accepted = performance.now()
    const { cursor } = await waiting.message
    if (number >= 0) delays.push(performance.now() - accepted)
    waiting.message = wait(waiting.inbox, cursor ?? undefined)
    await pause(Math.max(EVERY_MS - (performance.now() - slot), 0))
  }
  aborter.abort()
  await Promise.allSettled(waits.map(({ message }) => message))
  return delays
}
