import { setTimeout as pause } from 'node:timers/promises'
import { median, quantile } from './figure.js'
import { realisticMail } from './realistic-mail.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject } from './subject.js'

const EVERY_MS = 50

/** From the 250 to the first read that finds the message, at twenty mails per second. */
export const latency: Section = async ({ plan, engine, profileDir }) => {
  const subject = await Subject.start(profileDir)
  const client = await SmtpClient.open(subject.mayfly.smtpPort)
  try {
    const inbox = await subject.createInbox()
    const delays: number[] = []
    const reads: number[] = []
    // The first mails warm up and do not count.
    const warmUp = 20
    for (let number = -warmUp; number < plan.latencyMails; number++) {
      const slot = performance.now()
      const reply = await client.send(inbox.address, realisticMail(number + warmUp, inbox.address))
      const accepted = performance.now()
      const [messageId = ''] = /msg_\w+/.exec(reply) ?? []
      let readAt = accepted
      while (!(await subject.isVisible(inbox.id, messageId))) readAt = performance.now()
      const visible = performance.now()
      if (number >= 0) {
        delays.push(visible - accepted)
        reads.push(visible - readAt)
      }
      await pause(Math.max(EVERY_MS - (performance.now() - slot), 0))
    }
    const note =
      `Read by id without pause. Includes the read that found it, ${median(reads).toFixed(1)} ms at the median. ` +
      `Earlier reads slow the process.`
    return [
      {
        name: 'accepted to visible, p50',
        unit: 'ms',
        rounds: [median(delays)],
        ...(engine === 'embedded' ? { target: { atMost: 10 } } : {}),
        note,
      },
      {
        name: 'accepted to visible, p99',
        unit: 'ms',
        rounds: [quantile(delays, 0.99)],
        target: { atMost: engine === 'embedded' ? 20 : 200 },
      },
    ]
  } finally {
    client.close()
    await subject.dispose()
  }
}
