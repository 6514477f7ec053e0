import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import { until } from '#test/harness/until.js'
import { median, quantile } from './figure.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject, type InboxHandle } from './subject.js'
import { verificationMail } from './verification-mail.js'

const EVERY_MS = 50
const WARM_UP = 20
const OPEN_WITHIN_MS = 60_000
const COUNTED_INBOXES = 10_000
const COUNTS = 100

/**
 * From a 250 to the end of the answer to one of many waiting clients, each with its own inbox, at twenty mails per second;
 * then to one that waits for a count.
 */
export const waking: Section = async ({ plan, engine, profileDir }) => {
  const subject = await Subject.start(profileDir)
  const http = new Pool(subject.mayfly.url, { connections: plan.waiters, headersTimeout: 0 })
  const client = await SmtpClient.open(subject.mayfly.smtpPort)
  try {
    const inboxes = await subject.createInboxes(plan.waiters)
    const waiters = inboxes.map((inbox) => new Waiter(http, subject.mayfly.apiKey, inbox))
    const openWaits = () => subject.metric('mayfly_open_waits')
    await until('every wait', async () => (await openWaits()) === plan.waiters, OPEN_WITHIN_MS)
    const delays: number[] = []
    for (let number = -WARM_UP; number < plan.wakeUps; number++) {
      const slot = performance.now()
      const waiter = waiters[(number + WARM_UP) % waiters.length]
      if (waiter === undefined) throw new Error('no client waits')
      const woken = waiter.woken()
      const { address } = waiter.inbox
      await client.send(address, verificationMail(number + WARM_UP, address))
      const accepted = performance.now()
      const delay = (await woken) - accepted
      if (number >= 0) delays.push(delay)
      await pause(Math.max(EVERY_MS - (performance.now() - slot), 0))
    }
    const name = `accepted to woken, ${plan.waiters} waiting`
    return [
      {
        name: `${name}, p50`,
        unit: 'ms',
        rounds: [median(delays)],
        note: 'From the 250: parsing the mail and showing it in the views is part of it.',
      },
      {
        name: `${name}, p99`,
        unit: 'ms',
        rounds: [quantile(delays, 0.99)],
        ...(engine === 'embedded' ? { target: { atMost: 20 } } : {}),
      },
      {
        name: `accepted to woken, a count of ${COUNTED_INBOXES} inboxes, max`,
        unit: 'ms',
        rounds: [Math.max(...(await countDelays(subject, client)))],
        target: { atMost: 100 },
      },
    ]
  } finally {
    client.close()
    await http.destroy()
    await subject.dispose()
  }
}

/** From a 250 to the end of the answer to one wait for the number of messages of many inboxes. */
async function countDelays({ mayfly }: Subject, client: SmtpClient): Promise<number[]> {
  const headers = { authorization: `Bearer ${mayfly.apiKey}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ count: COUNTED_INBOXES, labels: { run: 'counted' } })
  const created = await fetch(`${mayfly.url}/v1/inboxes/bulk`, { method: 'POST', headers, body })
  const inboxes = (await created.json()) as { address: string }[]
  const delays: number[] = []
  for (let count = 1; count <= COUNTS; count++) {
    const path = `/v1/messages/wait?label=run:counted&count=${count}&timeout=55`
    const woken = fetch(`${mayfly.url}${path}`, { headers }).then(async (answer) => {
      if (answer.status !== 200) throw new Error(`a wait for a count was answered ${answer.status}`)
      await answer.text()
      return performance.now()
    })
    await pause(EVERY_MS)
    const address = inboxes[count]?.address ?? ''
    await client.send(address, verificationMail(count, address))
    const accepted = performance.now()
    delays.push((await woken) - accepted)
  }
  return delays
}

/** Waits repeatedly: after a message for the next one, after a timeout for any message. */
class Waiter {
  private cursor: string | null = null
  private onWoken: ((at: number) => void) | null = null

  constructor(
    private readonly http: Pool,
    private readonly apiKey: string,
    readonly inbox: InboxHandle,
  ) {
    // Ends when the pool is destroyed.
    void this.waitOn().catch(() => undefined)
  }

  /** Resolves with the time at which this waiter got the next message. */
  woken(): Promise<number> {
    return new Promise((resolve) => (this.onWoken = resolve))
  }

  private async waitOn(): Promise<never> {
    for (;;) {
      const from = this.cursor === null ? '' : `&cursor=${this.cursor}`
      const { statusCode, headers, body } = await this.http.request({
        method: 'GET',
        path: `/v1/inboxes/${this.inbox.id}/messages/wait?timeout=55${from}`,
        headers: { authorization: `Bearer ${this.apiKey}` },
      })
      await body.dump()
      this.cursor = String(headers['mayfly-cursor'] ?? '')
      if (statusCode === 200) this.onWoken?.(performance.now())
    }
  }
}
