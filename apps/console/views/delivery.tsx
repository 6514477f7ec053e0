import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useSession } from '../navigation.js'
import { FormDialog } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'

/** A delivery: its request, each attempt with the answer, and how a receiver verifies the signature. */
export function DeliveryDetails({
  webhook,
  deliveryId,
  onClose,
}: {
  webhook: Schemas['Webhook']
  deliveryId: string
  onClose: () => void
}) {
  const { api } = useSession()
  const delivery = useLoaded(
    (signal) => api.webhooks.getDelivery(webhook.id, deliveryId, { signal }),
    [deliveryId],
  )
  return (
    <FormDialog title={text.webhooks.delivery} onClose={onClose}>
      <Show loaded={delivery}>
        {(value) => (
          <>
            <h3>{text.webhooks.request}</h3>
            <pre class="wrap">{requestText(webhook.url, value)}</pre>
            <p>{text.webhooks.bodyHint}</p>
            <h3>{text.webhooks.attempts}</h3>
            <ol>
              {value.attempts.map(({ time, status, latency_ms, answer, error }) => (
                <li key={time}>
                  <Time value={time} /> ·{' '}
                  <strong class={error === null ? 'good' : 'bad'}>{status ?? text.webhooks.noAnswer}</strong>{' '}
                  · {latency_ms} ms
                  {error !== null && <p>{error}</p>}
                  {answer !== null && answer !== '' && <pre class="wrap">{answer}</pre>}
                </li>
              ))}
            </ol>
            <h3>{text.webhooks.signature}</h3>
            <p>{text.webhooks.signatureHint}</p>
            <pre class="wrap">
              <code>{VERIFY}</code>
            </pre>
          </>
        )}
      </Show>
    </FormDialog>
  )
}

function requestText(url: string, { id, event, replay_id, attempts }: Schemas['Delivery']): string {
  const { host, pathname, search } = new URL(url)
  const last = attempts.at(-1)
  const seconds = last === undefined ? '…' : Math.floor(Date.parse(last.time) / 1_000)
  return [
    `POST ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    `content-type: application/json`,
    `webhook-id: ${replay_id === null ? id : text.webhooks.idOfFirst}`,
    `webhook-timestamp: ${seconds}`,
    `webhook-signature: v1,…`,
    ``,
    `{"type":"${event}","timestamp":"…","data":{…}}`,
  ].join('\n')
}

const VERIFY = `import { verifyWebhook } from '@mayfly/client'

// Throws if the signature is wrong or too old. \`body\` is the unparsed text.
const event = await verifyWebhook(request.headers, body, process.env.WEBHOOK_SECRET)`
