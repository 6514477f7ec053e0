import { Inbox as InboxIcon, Plus } from 'lucide'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useEnvironment, useOpen, useSession, ViewLink } from '../navigation.js'
import { Empty } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Icon } from '../parts/icon.js'
import { Failure, Show, useAction, useLoaded } from '../parts/loading.js'
import { visibleLine } from '../parts/visible-text.js'
import { text } from '../text.js'

/** The recipients that were last refused, and what makes mail to them arrive. */
export function RefusedView() {
  const session = useSession()
  const { refused } = useEnvironment()
  const domains = useLoaded(
    async (signal) => (session.allows('admin') ? session.api.domains.list({ signal }) : []),
    [],
  )
  return (
    <section>
      <h1>{text.refused.title}</h1>
      <p>{text.refused.about}</p>
      <Show loaded={refused}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={text.refused.none} />
          ) : (
            <ul class="plain-list">
              {list.map((each) => (
                <RefusedRecipient
                  key={`${each.recipient} ${each.sender} ${each.reason}`}
                  mail={each}
                  domain={domains.value?.find((domain) => receives(domain, each.recipient))}
                />
              ))}
            </ul>
          )
        }
      </Show>
    </section>
  )
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase()
}

function receives({ name, subdomains }: Schemas['Domain'], address: string): boolean {
  const domain = domainOf(address)
  return domain === name || (subdomains && domain.endsWith(`.${name}`))
}

function RefusedRecipient({
  mail: { recipient, sender, code, reason, time, count },
  domain,
}: {
  mail: Schemas['RefusedMail']
  /** The domain of the account that the recipient is in. */
  domain: Schemas['Domain'] | undefined
}) {
  const session = useSession()
  const { api, mailDomain } = session
  const { inboxes, createInbox: openDialog } = useEnvironment()
  const open = useOpen()
  const isMadeUp = domain === undefined && domainOf(recipient) === mailDomain
  const { isRunning, error, run } = useAction()
  const createInbox = async () => {
    const inbox = await api.inboxes.create({ address: recipient })
    inboxes.put(inbox)
    open(`/inboxes/${inbox.id}`)
  }
  const catchAll = async (id: string) => {
    await api.domains.change(id, { catchAll: { action: 'create' } })
    open('/domains')
  }
  return (
    <li>
      <div class="heading">
        <div>
          <strong>{visibleLine(recipient)}</strong> {count > 1 && <span class="tag">{`× ${count}`}</span>}
          <div class="muted">
            {text.refused.from(sender === '' ? '<>' : visibleLine(sender))} · <Time value={time} isRelative />
          </div>
          <code class="bad">
            {code} {visibleLine(reason)}
          </code>
          {isMadeUp && <div>{text.refused.madeUp(mailDomain)}</div>}
        </div>
        {!session.allows('inboxes') ? null : isMadeUp ? (
          <button type="button" onClick={openDialog}>
            <Icon of={Plus} size={16} /> {text.inboxes.create}
          </button>
        ) : domain === undefined && session.allows('admin') ? (
          <ViewLink to="/domains">{text.refused.noDomain}</ViewLink>
        ) : (
          <button type="button" disabled={isRunning} onClick={() => void run(createInbox)}>
            <Icon of={InboxIcon} size={16} /> {text.refused.createInbox}
          </button>
        )}
        {domain?.catch_all.action === 'reject' && (
          <button type="button" disabled={isRunning} onClick={() => void run(() => catchAll(domain.id))}>
            {text.refused.catchAll(domain.name)}
          </button>
        )}
      </div>
      {error !== null && <Failure error={error} />}
    </li>
  )
}
