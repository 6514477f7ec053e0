import { cpuMs } from './cpu-time.js'
import { quantile } from './figure.js'
import { realisticMail } from './realistic-mail.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject } from './subject.js'

const BULK = 10_000
/** More commands without a mail would end a session. */
const RECIPIENTS_OF_SESSION = 50
const WITHOUT_LIMITS = { MAYFLY_AUTO_INBOXES_PER_MINUTE: '1000000', MAYFLY_AUTO_INBOXES_PER_DAY: '1000000' }

/**
 * What RCPT TO costs for an address in a domain whose catch-all makes inboxes, compared with a generated address, and how
 * long the first mail to an address takes.
 */
export const recipients: Section = async ({ plan, profileDir, say }) => {
  const subject = await Subject.start(profileDir, WITHOUT_LIMITS)
  const { smtpPort } = subject.mayfly
  const client = await SmtpClient.open(smtpPort)
  try {
    for (let left = plan.inboxes; left > 0; left -= BULK) await subject.createInBulk(Math.min(BULK, left))
    const { address: generated } = await subject.createInbox()
    const domain = await subject.createDomain()
    const known = `known@${domain}`
    await client.send(known, realisticMail(0, known))
    await subject.untilCaughtUp()

    let unknown = 0
    const addresses = {
      generated: () => generated,
      'known, in a domain': () => known,
      'unknown, in a domain': () => `unknown-${unknown++}@${domain}`,
    }
    const spent = new Map<string, number[]>()
    // The first round warms up and does not count.
    for (let round = 0; round <= plan.rounds; round += 1) {
      for (const [name, addressOf] of Object.entries(addresses)) {
        const ms = await cpuMs(subject.mayfly.pids, async () => {
          for (let count = 0; count < plan.acceptedMails; count += RECIPIENTS_OF_SESSION) {
            const session = await SmtpClient.open(smtpPort)
            await session.offer(Array.from({ length: RECIPIENTS_OF_SESSION }, addressOf))
            session.close()
          }
        })
        if (round > 0) spent.set(name, [...(spent.get(name) ?? []), (ms * 1_000) / plan.acceptedMails])
      }
      say(`round ${round} of ${plan.rounds}`)
    }
    const baseline = { name: 'generated', rounds: spent.get('generated') ?? [] }
    const costs = [...spent].map(([name, rounds]) => ({
      ...{ name: `CPU of RCPT TO, ${name}`, unit: 'µs', rounds },
      ...(name === 'generated' ? {} : { baseline, target: { atMost: 1.2 } }),
    }))

    const times: number[] = []
    for (let number = 0; number < plan.latencyMails; number += 1) {
      const to = `first-${number}@${domain}`
      const source = realisticMail(number, to)
      const started = performance.now()
      await client.send(to, source)
      times.push(performance.now() - started)
    }
    const first = { name: 'first mail to an address, p99', unit: 'ms', rounds: [quantile(times, 0.99)] }
    return [...costs, { ...first, target: { atMost: 30 } }]
  } finally {
    client.close()
    await subject.dispose()
  }
}
