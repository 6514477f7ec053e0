import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useSession } from '../navigation.js'
import { Field, FormDialog, Secret, type FormValues } from '../parts/controls.js'
import { parseLabels, writeLabels } from '../parts/format.js'
import { text } from '../text.js'

/** Creates an inbox, or changes one. The password of a protected inbox is shown once. */
export function InboxDialog({
  inbox,
  onClose,
  onSaved,
}: {
  inbox?: Schemas['Inbox']
  onClose: () => void
  onSaved: (inbox: Schemas['Inbox']) => void
}) {
  const { api, passwords } = useSession()
  const [created, setCreated] = useState<{ inbox: Schemas['Inbox']; password: string } | null>(null)
  const submit = async (values: FormValues) => {
    const name = values.text('name') || null
    const labels = parseLabels(values.text('labels'))
    const duration = values.text('duration') || undefined
    if (inbox !== undefined) {
      const password = passwords.get(inbox.id)
      const found = await api.inboxes.get(inbox.id, { password })
      // A duration that is not changed is not sent, because it may be over a plan that has changed since.
      const changed = duration === inbox.duration ? undefined : duration
      onSaved(await found.update({ name, labels, duration: changed, password }))
      onClose()
      return
    }
    const isProtected = values.isChecked('protected')
    const address = values.text('address') || undefined
    const made = await api.inboxes.create({ name, address, labels, duration, passwordProtected: isProtected })
    if (made.password === undefined) {
      onClose()
      onSaved(made)
      return
    }
    passwords.set(made.id, made.password)
    setCreated({ inbox: made, password: made.password })
  }
  if (created !== null) {
    const close = () => {
      onClose()
      onSaved(created.inbox)
    }
    return (
      <FormDialog title={text.inboxes.created} onClose={close}>
        <Secret label={text.inboxes.password} value={created.password} hint={text.inboxes.passwordHint} />
      </FormDialog>
    )
  }
  return (
    <FormDialog
      title={inbox === undefined ? text.inboxes.create : text.inboxes.editWhat(inbox.name ?? inbox.address)}
      action={inbox === undefined ? text.create : text.save}
      submit={submit}
      onClose={onClose}
    >
      <Field label={text.name} name="name" maxLength={200} defaultValue={inbox?.name ?? ''} />
      {inbox === undefined && (
        <Field
          label={text.inboxes.address}
          hint={text.inboxes.addressHint}
          name="address"
          placeholder="support@staging.example.com"
        />
      )}
      <Field
        label={text.inboxes.duration}
        hint={inbox === undefined ? text.inboxes.durationHint : text.inboxes.durationChangeHint}
        name="duration"
        placeholder="24h"
        pattern="[1-9][0-9]*[mhdw]"
        defaultValue={inbox?.duration ?? ''}
      />
      <Field
        label={text.inboxes.labels}
        hint={text.inboxes.labelsHint}
        name="labels"
        placeholder="run:42, team:web"
        defaultValue={writeLabels(inbox?.labels ?? {})}
      />
      {inbox === undefined && (
        <label class="check">
          <input type="checkbox" name="protected" /> {text.inboxes.protect}
        </label>
      )}
    </FormDialog>
  )
}
