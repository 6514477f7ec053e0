import { createInbox, type Target } from '#test/harness/client.js'
import { call, mail } from '#test/harness/client.js'
import { until } from '#test/harness/until.js'
import { SmtpClient } from '#test/bench/smtp-client.js'

const FAILS_AFTER_MS = 30_000

/**
 * Milliseconds from each mail's 250 to the first read that finds it. Sends small mails one by one, to inboxes in turn,
 * which are in as many partitions.
 */
export async function visibilityDelays(
  target: Target,
  { mails, inboxes: count }: { mails: number; inboxes: number },
): Promise<number[]> {
  const inboxes = await Promise.all(Array.from({ length: count }, () => createInbox(target)))
  const client = await SmtpClient.open(target.smtpPort)
  const times: number[] = []
  try {
    for (let number = 0; number < mails; number++) {
      const { id: inboxId = '', address = '' } = inboxes[number % count] ?? {}
      const reply = await client.send(address, mail(`Mail ${number}`))
      const acceptedAt = performance.now()
      const [id = ''] = /msg_\w+/.exec(reply) ?? []
      const path = `/v1/inboxes/${inboxId}/messages/${id}?raw=false`
      await until(
        `${id} to be shown`,
        async () => (await call(target, 'GET', path)).status === 200,
        FAILS_AFTER_MS,
      )
      times.push(performance.now() - acceptedAt)
    }
  } finally {
    client.close()
  }
  return times
}
