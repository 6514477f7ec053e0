import { Plus, Send } from 'lucide'
import { useState } from 'preact/hooks'
import { useEnvironment, useSession, ViewLink } from '../navigation.js'
import { CopyButton, Tabs } from '../parts/controls.js'
import { Icon } from '../parts/icon.js'
import { Failure, useAction } from '../parts/loading.js'
import { text } from '../text.js'
import { isActive } from './inbox-list.js'
import { sendingWith, SENDERS, type Sender } from './senders.js'

/** What an environment without mail shows: how the first one arrives. */
export function FirstSteps() {
  const { inboxes, createInbox } = useEnvironment()
  const session = useSession()
  const inbox = inboxes.inboxes.find(isActive)
  return (
    <div class="empty first-steps">
      <h2>{text.first.title}</h2>
      <RefusedHint />
      <ol>
        <li>
          <h3>{text.first.create}</h3>
          {inbox === undefined ? (
            session.allows('inboxes') && (
              <button type="button" class="primary" onClick={createInbox}>
                <Icon of={Plus} /> {text.inboxes.create}
              </button>
            )
          ) : (
            <p class="address">
              <code>{inbox.address}</code>{' '}
              <CopyButton value={inbox.address} label={text.copyWhat(inbox.address)} />
            </p>
          )}
        </li>
        <li>
          <h3>{text.first.send}</h3>
          <SendingGuide address={inbox?.address ?? text.first.anyAddress} inboxId={inbox?.id} />
        </li>
        <li>
          <h3>{text.first.read}</h3>
          <p>{text.mail.noneHint}</p>
        </li>
      </ol>
    </div>
  )
}

/** How applications send mail here, also when there is mail already. */
export function SendingView() {
  const { inboxes } = useEnvironment()
  const inbox = inboxes.inboxes.find(isActive)
  return (
    <section>
      <h1>{text.first.settingsTitle}</h1>
      <p>{text.first.about}</p>
      <SendingGuide address={inbox?.address ?? text.first.anyAddress} inboxId={inbox?.id} />
    </section>
  )
}

/** Why mail that was sent is not here. */
export function RefusedHint() {
  const { refused } = useEnvironment()
  const count = refused.value?.length ?? 0
  if (count === 0) return null
  return (
    <p class="notice">
      {text.refused.hint(count)} <ViewLink to="/refused">{text.refused.show}</ViewLink>
    </p>
  )
}

/** How an application sends mail to this server, and a button that puts a sample into an inbox. */
export function SendingGuide({ address, inboxId }: { address: string; inboxId: string | undefined }) {
  const session = useSession()
  const { api, passwords, smtpPort } = session
  const [sender, setSender] = useState<Sender>('node')
  const { isRunning, error, run } = useAction()
  const code = sendingWith(sender, { host: location.hostname, port: smtpPort, address })
  const sendSample = async (id: string) => {
    const inbox = await api.inboxes.get(id, { password: passwords.get(id) })
    await inbox.injectMessage(text.first.sample)
  }
  return (
    <>
      <p>
        {text.first.server} <code>{`${location.hostname}:${smtpPort}`}</code>{' '}
        <CopyButton value={`${location.hostname}:${smtpPort}`} label={text.copyWhat(text.first.server)} />{' '}
        {inboxId !== undefined && session.allows('inboxes') && (
          <button type="button" disabled={isRunning} onClick={() => void run(() => sendSample(inboxId))}>
            <Icon of={Send} size={16} /> {text.first.sendSample}
          </button>
        )}
      </p>
      {error !== null && <Failure error={error} />}
      <Tabs label={text.first.senders} tabs={SENDERS} current={sender} onChange={setSender}>
        <CopyButton value={code} label={text.copyWhat(text.first.settings)} />
        <pre class="wrap">
          <code>{code}</code>
        </pre>
      </Tabs>
    </>
  )
}
