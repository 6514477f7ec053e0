import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useDialog, useSession, ViewLink } from '../navigation.js'
import { Empty, Field, FormDialog, Secret, type FormValues, Table } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'
import { WEBHOOK_EVENTS } from '../webhook-events.js'

/** The webhooks of the environment. */
export function WebhooksView() {
  const { api } = useSession()
  const webhooks = useLoaded((signal) => api.webhooks.list({ order: 'desc', signal }), [])
  const [isRegistering, setRegistering] = useDialog('create')
  return (
    <section>
      <div class="heading">
        <h1>{text.webhooks.title}</h1>
        <button type="button" class="primary" onClick={() => setRegistering(true)}>
          {text.webhooks.register}
        </button>
      </div>
      <Show loaded={webhooks}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={text.webhooks.none}>
              <p>{text.webhooks.noneHint}</p>
            </Empty>
          ) : (
            <WebhookTable webhooks={list} />
          )
        }
      </Show>
      {isRegistering && (
        <RegisterDialog
          onClose={() => {
            setRegistering(false)
            webhooks.reload()
          }}
        />
      )}
    </section>
  )
}

function WebhookTable({ webhooks }: { webhooks: readonly Schemas['Webhook'][] }) {
  return (
    <Table columns={['URL', text.state, text.webhooks.events, text.created]}>
      {webhooks.map((each) => (
        <tr key={each.id}>
          <td>
            <ViewLink to={`/webhooks/${each.id}`}>{each.url}</ViewLink>
          </td>
          <td>
            <WebhookState webhook={each} />
          </td>
          <td>{each.events.join(', ')}</td>
          <td>
            <Time value={each.created_at} />
          </td>
        </tr>
      ))}
    </Table>
  )
}

/** Whether a webhook is active, or why not. */
export function WebhookState({ webhook: { state, disabled_reason } }: { webhook: Schemas['Webhook'] }) {
  return (
    <span class={`state ${state}`}>
      {disabled_reason === null ? state : text.webhooks.disabledBecause[disabled_reason]}
    </span>
  )
}

function RegisterDialog({ onClose }: { onClose: () => void }) {
  const { api, passwords } = useSession()
  const [secret, setSecret] = useState<string | null>(null)
  if (secret !== null) {
    return (
      <FormDialog title={text.webhooks.registered} onClose={onClose}>
        <Secret label={text.webhooks.secret} value={secret} hint={text.webhooks.secretHint} />
      </FormDialog>
    )
  }
  const submit = async (values: FormValues) => {
    const events = WEBHOOK_EVENTS.filter((event) => values.isChecked(event))
    if (events.length === 0) throw new Error(text.webhooks.noEvent)
    const options = { url: values.text('url'), events }
    const inboxId = values.text('inbox')
    const password = passwords.get(inboxId)
    const registered =
      inboxId === ''
        ? await api.webhooks.create(options)
        : await (await api.inboxes.get(inboxId, { password })).createWebhook(options)
    setSecret(registered.secret)
  }
  return (
    <FormDialog
      title={text.webhooks.register}
      action={text.webhooks.register}
      submit={submit}
      onClose={onClose}
    >
      <Field label="URL" name="url" type="url" required placeholder="https://app.example/hooks/mail" />
      <fieldset>
        <legend>{text.webhooks.events}</legend>
        {WEBHOOK_EVENTS.map((event) => (
          <label key={event} class="check">
            <input type="checkbox" name={event} defaultChecked={event === 'message.received'} /> {event}
          </label>
        ))}
      </fieldset>
      <Field label={text.webhooks.inbox} hint={text.webhooks.inboxHint} name="inbox" placeholder="inb_…" />
    </FormDialog>
  )
}
