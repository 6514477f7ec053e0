import { until } from '#test/harness/until.js'
import { realisticMail } from './realistic-mail.js'
import type { Section } from './section.js'
import { sendAll } from './smtp-client.js'
import { Subject, type InboxHandle } from './subject.js'

const PROJECTED = 'mayfly_projected_records_total'
const CPU_SECONDS = 'process_cpu_seconds_total'
const DRAIN_WITHIN_MS = 300_000

/** CPU time per mail with one inbox, and with many inboxes that get mails in turn. */
export const manyInboxes: Section = async ({ plan, profileDir, say }) => {
  const one = await Subject.start(profileDir)
  const many = await Subject.start(profileDir)
  try {
    const [single, several] = [await one.createInboxes(1), await many.createInboxes(plan.manyInboxes)]
    say(`made ${plan.manyInboxes} inboxes`)
    const costs = { one: [] as number[], many: [] as number[] }
    // The first round warms up and does not count.
    for (let round = 0; round <= plan.rounds; round++) {
      const mails = plan.manyInboxesMails
      const cost = { one: await cpuPerMail(one, single, mails), many: await cpuPerMail(many, several, mails) }
      if (round === 0) continue
      costs.one.push(cost.one)
      costs.many.push(cost.many)
    }
    return [
      {
        name: `CPU per mail, ${plan.manyInboxes} inboxes`,
        unit: 'ms',
        rounds: costs.many,
        baseline: { name: '1 inbox', rounds: costs.one },
        target: { atMost: 1.2 },
      },
    ]
  } finally {
    await one.dispose()
    await many.dispose()
  }
}

/** Milliseconds of the process's CPU, all threads, from the first mail sent to the last one visible. */
async function cpuPerMail(subject: Subject, inboxes: readonly InboxHandle[], mails: number): Promise<number> {
  const before = { cpu: await subject.metric(CPU_SECONDS), records: await subject.metric(PROJECTED) }
  await sendAll({
    port: subject.mayfly.smtpPort,
    connections: 20,
    mails,
    addressOf: (number) => inboxes[(number * 7_919) % inboxes.length]?.address ?? '',
    sourceOf: realisticMail,
  })
  const isShown = async () => (await subject.metric(PROJECTED)) >= before.records + mails
  await until(`${mails} mails in the views`, isShown, DRAIN_WITHIN_MS)
  return (((await subject.metric(CPU_SECONDS)) - before.cpu) * 1000) / mails
}
