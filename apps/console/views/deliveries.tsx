import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useParameters, useSession } from '../navigation.js'
import { Choice, Empty, Table } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Failure, Show, useAction, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'
import { DeliveryDetails } from './delivery.js'

type Webhook = Schemas['Webhook']
type Delivery = Schemas['Delivery']

const STATES = [
  ['all', text.all],
  ['failed', text.webhooks.failed],
  ['pending', text.webhooks.pending],
  ['succeeded', text.webhooks.succeeded],
  ['abandoned', text.webhooks.abandoned],
] as const

const SHOWN_DELIVERIES = 200
const REFRESH_MS = 3_000

/** The newest deliveries of a webhook, with one of them open. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const { api } = useSession()
  const [{ state: stateText = 'all', delivery: openId }, change] = useParameters()
  const state = STATES.find(([name]) => name === stateText)?.[0] ?? 'all'
  const deliveries = useLoaded(
    (signal) =>
      api.webhooks.listDeliveries(webhook.id, {
        ...(state === 'all' ? {} : { state }),
        order: 'desc',
        limit: SHOWN_DELIVERIES,
        signal,
      }),
    [webhook.id, state],
    REFRESH_MS,
  )
  const replays = useReplay(webhook, deliveries.reload)
  const failedIds = (deliveries.value ?? []).filter(hasFailed).map(({ id }) => id)
  return (
    <>
      <div class="heading">
        <h2>{text.webhooks.deliveries}</h2>
        <Choice
          label={text.state}
          value={state}
          options={STATES}
          onChange={(chosen) => change({ state: chosen })}
        />
        <button
          type="button"
          disabled={replays.isRunning || failedIds.length === 0}
          onClick={() => replays.start(failedIds)}
        >
          {text.webhooks.replayFailed}
        </button>
      </div>
      {replays.status}
      <Show loaded={deliveries}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={state === 'all' ? text.webhooks.noDeliveries : text.webhooks.noDeliveryInState}>
              {state === 'all' && <p>{text.webhooks.noDeliveriesHint}</p>}
              {state === 'failed' && <p>{text.webhooks.noFailedHint}</p>}
            </Empty>
          ) : (
            <DeliveryTable
              deliveries={list}
              onOpen={(id) => change({ delivery: id })}
              onReplay={(id) => replays.start([id])}
            />
          )
        }
      </Show>
      {openId !== undefined && (
        <DeliveryDetails
          webhook={webhook}
          deliveryId={openId}
          onClose={() => change({ delivery: undefined })}
        />
      )}
    </>
  )
}

const hasFailed = ({ state }: Delivery) => state === 'failed' || state === 'abandoned'

function DeliveryTable({
  deliveries,
  onOpen,
  onReplay,
}: {
  deliveries: readonly Delivery[]
  onOpen: (id: string) => void
  onReplay: (id: string) => void
}) {
  return (
    <Table columns={[text.created, text.mail.event, text.state, text.webhooks.lastAttempt, text.actions]}>
      {deliveries.map((delivery) => {
        const { id, created_at, event, state, attempts, next_attempt_at, replay_id } = delivery
        const last = attempts.at(-1)
        return (
          <tr key={id}>
            <td>
              <Time value={created_at} />
            </td>
            <td>
              {event}
              {replay_id !== null && ` (${text.webhooks.replayed})`}
            </td>
            <td>
              <strong class={state === 'succeeded' ? 'good' : hasFailed(delivery) ? 'bad' : ''}>
                {state === 'pending' && last !== undefined ? text.webhooks.retrying : state}
              </strong>
            </td>
            <td>
              {last === undefined
                ? text.webhooks.noAttempt
                : text.webhooks.attempt(attempts.length, last.status, last.error)}
              {next_attempt_at !== null && (
                <>
                  {'; '}
                  {text.webhooks.next} <Time value={next_attempt_at} />
                </>
              )}
            </td>
            <td class="buttons">
              <button type="button" aria-label={text.webhooks.openDelivery(id)} onClick={() => onOpen(id)}>
                {text.open}
              </button>
              {event !== 'sample' && (
                <button
                  type="button"
                  aria-label={text.webhooks.replayDelivery(id)}
                  onClick={() => onReplay(id)}
                >
                  {text.webhooks.replay}
                </button>
              )}
            </td>
          </tr>
        )
      })}
    </Table>
  )
}

/** Starts replays, and follows the last one to its end. */
function useReplay({ id: webhookId }: Webhook, onProgress: () => void) {
  const { api } = useSession()
  const { isRunning, error, run } = useAction()
  const [replay, setReplay] = useState<Schemas['Replay'] | null>(null)
  const start = (deliveryIds: string[]) => {
    void run(async () => {
      let current = await api.webhooks.replay(webhookId, { deliveryIds })
      setReplay(current)
      while (current.state === 'running') {
        await new Promise((resolve) => setTimeout(resolve, 500))
        current = await api.webhooks.getReplay(webhookId, current.id)
        setReplay(current)
      }
      onProgress()
    })
  }
  const status = (
    <>
      {error !== null && <Failure error={error} />}
      {replay !== null && (
        <p role="status">
          {text.webhooks.replayProgress(replay.state, replay.done, replay.requested)}
          {isRunning && (
            <progress max={Math.max(replay.requested, 1)} value={replay.done} aria-label={text.working} />
          )}
        </p>
      )}
    </>
  )
  return { isRunning, start, status }
}
