import { History as HistoryIcon, Pencil, Share2, Trash2 } from 'lucide'
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import type { Inbox } from '#clients/typescript/src/mayfly.js'
import { useEnvironment, useOpen, useSession } from '../navigation.js'
import { CopyButton, FormDialog } from '../parts/controls.js'
import { FaultsNotice } from '../parts/faults-notice.js'
import { formatBytes, Labels, Time, TimeLeft } from '../parts/format.js'
import { IconButton } from '../parts/icon.js'
import { Failure, Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'
import { Live } from './all-mail.js'
import { RefusedHint, SendingGuide } from './first-steps.js'
import { InboxDialog } from './inbox-dialog.js'
import { Mailbox } from './mailbox.js'
import { ShareDialog } from './share-dialog.js'

/** An inbox of the environment, with its mail. */
export function MailView() {
  const session = useSession()
  const inboxId = useRoute().params.id ?? ''
  return (
    <Mailbox
      key={inboxId}
      inboxId={inboxId}
      canDelete={session.allows('inboxes')}
      heading={(inbox, { isLive, reload }) => (
        <header class="list-heading inbox-heading">
          <InboxHeading inbox={inbox} isLive={isLive} onChanged={reload} />
          <FaultsNotice of={inbox.id} title={text.faults.ofInbox} />
        </header>
      )}
      emptyHint={({ address, id }) => (
        <>
          <RefusedHint />
          <SendingGuide address={address} inboxId={id} />
        </>
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
  const session = useSession()
  const { api, passwords } = session
  const mayChange = session.allows('inboxes')
  const { inboxes } = useEnvironment()
  const open = useOpen()
  const [dialog, setDialog] = useState<'edit' | 'share' | 'delete' | 'history' | null>(null)
  const copyAddress = <CopyButton value={inbox.address} label={text.copyWhat(inbox.address)} />
  return (
    <>
      <div class="heading">
        <h1 title={inbox.id}>{inbox.name ?? inbox.address}</h1>
        {inbox.name === null && copyAddress}
        <Live isLive={isLive} />
      </div>
      {inbox.name !== null && (
        <p class="address">
          <code>{inbox.address}</code> {copyAddress}
        </p>
      )}
      <div class="facts">
        <span>
          <TimeLeft expiresAt={inbox.expires_at} /> <Labels labels={inbox.labels} />
        </span>
        {mayChange && (
          <>
            <IconButton of={Pencil} label={text.edit} onClick={() => setDialog('edit')} />
            <IconButton of={Share2} label={text.share.action} onClick={() => setDialog('share')} />
          </>
        )}
        <IconButton of={HistoryIcon} label={text.mail.history} onClick={() => setDialog('history')} />
        {mayChange && (
          <IconButton
            of={Trash2}
            class="dangerous"
            label={text.inboxes.deleteAction(1)}
            onClick={() => setDialog('delete')}
          />
        )}
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
          onDone={() => {
            inboxes.remove([inbox.id])
            open('/mail')
          }}
        >
          <p>{text.inboxes.deleteWarning}</p>
        </FormDialog>
      )}
    </>
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
