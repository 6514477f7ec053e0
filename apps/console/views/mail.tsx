import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import type { Inbox } from '#clients/typescript/src/mayfly.js'
import { useOpen, useSession } from '../navigation.js'
import { Command, CopyButton, FormDialog } from '../parts/controls.js'
import { FaultsNotice } from '../parts/faults-notice.js'
import { formatBytes, Labels, Time, TimeLeft } from '../parts/format.js'
import { Failure, Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'
import { InboxDialog } from './inbox-dialog.js'
import { Mailbox } from './mailbox.js'
import { ShareDialog } from './share-dialog.js'

/** An inbox of the environment, with its mail. */
export function MailView() {
  const inboxId = useRoute().params.id ?? ''
  const { smtpPort } = useSession()
  return (
    <Mailbox
      key={inboxId}
      inboxId={inboxId}
      canDeleteMessages
      heading={(inbox, { isLive, reload }) => (
        <>
          <InboxHeading inbox={inbox} isLive={isLive} onChanged={reload} />
          <FaultsNotice of={inbox.id} title={text.faults.ofInbox} />
        </>
      )}
      emptyHint={({ address }) => (
        <Command intro={text.mail.tryIt} command={text.mail.example(address, smtpPort)} />
      )}
      afterEnd={(reason) => (
        <>
          <Failure error={reason} />
          <History inboxId={inboxId} />
        </>
      )}
    />
  )
}

function InboxHeading({
  inbox,
  isLive,
  onChanged,
}: {
  inbox: Inbox
  isLive: boolean
  onChanged: () => void
}) {
  const { api, passwords } = useSession()
  const open = useOpen()
  const [dialog, setDialog] = useState<'edit' | 'share' | 'delete' | 'history' | null>(null)
  return (
    <header class="inbox-heading">
      <h1>{inbox.name ?? text.mail.inbox}</h1>
      <p class="address">
        <code>{inbox.address}</code> <CopyButton value={inbox.address} label={text.copyWhat(inbox.address)} />
      </p>
      <p class="facts">
        <Labels labels={inbox.labels} />
        <TimeLeft expiresAt={inbox.expires_at} />
        <span class={isLive ? 'live' : 'not-live'} role="status">
          {isLive ? text.mail.live : text.mail.reconnecting}
        </span>
      </p>
      <div class="buttons">
        <button type="button" onClick={() => setDialog('edit')}>
          {text.edit}
        </button>
        <button type="button" onClick={() => setDialog('history')}>
          {text.mail.history}
        </button>
        <button type="button" onClick={() => setDialog('share')}>
          {text.share.action}
        </button>
        <button type="button" onClick={() => setDialog('delete')}>
          {text.delete}
        </button>
      </div>
      {dialog === 'edit' && <InboxDialog inbox={inbox} onClose={() => setDialog(null)} onSaved={onChanged} />}
      {dialog === 'share' && <ShareDialog inbox={inbox} onClose={() => setDialog(null)} />}
      {dialog === 'history' && (
        <FormDialog title={text.mail.history} onClose={() => setDialog(null)}>
          <History inboxId={inbox.id} />
        </FormDialog>
      )}
      {dialog === 'delete' && (
        <FormDialog
          title={text.inboxes.deleteTitle(1)}
          action={text.inboxes.deleteAction(1)}
          isDangerous
          submit={() => api.inboxes.delete(inbox.id, { password: passwords.get(inbox.id) })}
          onClose={() => setDialog(null)}
          onDone={() => open('/inboxes')}
        >
          <p>{text.inboxes.deleteWarning}</p>
        </FormDialog>
      )}
    </header>
  )
}

/** The newest events of an inbox; also after its end. */
function History({ inboxId }: { inboxId: string }) {
  const session = useSession()
  const events = useLoaded((signal) => session.history(inboxId, signal), [inboxId])
  return (
    <Show loaded={events}>
      {(list) => (
        <div class="scroll" tabIndex={0}>
          <table>
            <caption>{text.mail.historyCaption}</caption>
            <thead>
              <tr>
                <th scope="col">{text.time}</th>
                <th scope="col">{text.mail.event}</th>
                <th scope="col">{text.mail.about}</th>
                <th scope="col">{text.mail.position}</th>
              </tr>
            </thead>
            <tbody>
              {list.map(({ id, time, type, message_id, key_id, actor, changed, size, position }) => (
                <tr key={id}>
                  <td>
                    <Time value={time} />
                  </td>
                  <td>{type}</td>
                  <td class="id">
                    {[message_id, changed?.join(', '), actor ?? key_id, size && formatBytes(size)]
                      .filter(Boolean)
                      .join(', ')}
                  </td>
                  <td>
                    {position.partition}/{position.offset}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Show>
  )
}
