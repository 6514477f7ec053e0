import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useOpen, useSession } from '../navigation.js'
import { Field, FormDialog, Secret } from '../parts/controls.js'
import { Failure, Show, useAction, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'
import { Deliveries } from './deliveries.js'
import { WebhookState } from './webhooks.js'

type Webhook = Schemas['Webhook']

/** A webhook with its deliveries. */
export function WebhookView() {
  const { api } = useSession()
  const id = useRoute().params.id ?? ''
  const webhook = useLoaded((signal) => api.webhooks.get(id, { signal }), [id])
  return (
    <section>
      <Show loaded={webhook}>
        {(value) => (
          <>
            <WebhookHeading webhook={value} onChanged={webhook.reload} />
            <Deliveries webhook={value} />
          </>
        )}
      </Show>
    </section>
  )
}

function WebhookHeading({ webhook, onChanged }: { webhook: Webhook; onChanged: () => void }) {
  const { api } = useSession()
  const open = useOpen()
  const { isRunning, error, run } = useAction()
  const [dialog, setDialog] = useState<'rotate' | 'delete' | null>(null)
  const isActive = webhook.state === 'active'
  const change = async (state: Webhook['state']) => {
    await run(() => api.webhooks.change(webhook.id, { state }))
    onChanged()
  }
  return (
    <>
      <h1 class="url">{webhook.url}</h1>
      <p>
        {webhook.inbox_id === null ? text.webhooks.ofEnvironment : text.webhooks.ofInbox(webhook.inbox_id)} ·{' '}
        {webhook.events.join(', ')} · <WebhookState webhook={webhook} />
      </p>
      <div class="buttons">
        <button
          type="button"
          disabled={isRunning}
          onClick={() => void run(() => api.webhooks.test(webhook.id))}
        >
          {text.webhooks.test}
        </button>
        <button
          type="button"
          disabled={isRunning}
          onClick={() => void change(isActive ? 'disabled' : 'active')}
        >
          {isActive ? text.webhooks.disable : text.webhooks.enable}
        </button>
        <button type="button" onClick={() => setDialog('rotate')}>
          {text.webhooks.rotate}
        </button>
        <button type="button" onClick={() => setDialog('delete')}>
          {text.delete}
        </button>
      </div>
      {error !== null && <Failure error={error} />}
      {dialog === 'rotate' && <RotateDialog webhook={webhook} onClose={() => setDialog(null)} />}
      {dialog === 'delete' && (
        <FormDialog
          title={text.webhooks.deleteTitle}
          action={text.delete}
          isDangerous
          submit={() => api.webhooks.delete(webhook.id)}
          onClose={() => setDialog(null)}
          onDone={() => open('/webhooks')}
        >
          <p>{text.webhooks.deleteWarning}</p>
        </FormDialog>
      )}
    </>
  )
}

function RotateDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { api } = useSession()
  const [secret, setSecret] = useState<string | null>(null)
  if (secret !== null) {
    return (
      <FormDialog title={text.webhooks.rotated} onClose={onClose}>
        <Secret label={text.webhooks.secret} value={secret} hint={text.webhooks.secretHint} />
      </FormDialog>
    )
  }
  return (
    <FormDialog
      title={text.webhooks.rotate}
      action={text.webhooks.rotate}
      submit={async (values) => {
        const grace = values.text('grace') || undefined
        setSecret((await api.webhooks.rotateSecret(webhook.id, { grace })).secret)
      }}
      onClose={onClose}
    >
      <Field label={text.grace} hint={text.webhooks.graceHint} name="grace" placeholder="24h" />
    </FormDialog>
  )
}
