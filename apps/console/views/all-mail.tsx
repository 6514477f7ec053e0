import { Bell, BellOff, Bookmark, CheckCheck, X } from 'lucide'
import { useEnvironment, useParameters, useSession, type Environment } from '../navigation.js'
import { Empty } from '../parts/controls.js'
import { FaultsNotice } from '../parts/faults-notice.js'
import { Icon, IconButton } from '../parts/icon.js'
import { useReadMail } from '../parts/stored.js'
import { visibleLine } from '../parts/visible-text.js'
import { text } from '../text.js'
import { FirstSteps } from './first-steps.js'
import { isActive } from './inbox-list.js'
import { MailPanes } from './mail-panes.js'
import { useAllMail, type MessageList } from './message-list.js'
import { termsOf } from './search-box.js'
import { useSavedSearches } from './sidebar.js'
import { useNotifications } from './unread-title.js'

/** The mail of all inboxes of the environment that are not protected, or what a search finds of it. */
export function AllMailView() {
  const [{ q = '' }] = useParameters()
  const { mail, ...environment } = useEnvironment()
  // The key keeps what was selected in one list out of another.
  return q === '' ? (
    <Panes key="all" list={mail} q="" {...environment} />
  ) : (
    <SearchedMail key={`search ${q}`} q={q} {...environment} />
  )
}

function SearchedMail({ q, ...environment }: { q: string } & Omit<Environment, 'mail'>) {
  const list = useAllMail(useSession(), environment.feed, q)
  return <Panes list={list} q={q} {...environment} />
}

function Panes({ list, q, inboxes }: { list: MessageList; q: string } & Omit<Environment, 'mail'>) {
  const session = useSession()
  const active = inboxes.inboxes.filter(isActive)
  const names = new Map(active.map((inbox) => [inbox.id, inbox.name ?? inbox.address]))
  const total = active.reduce((sum, each) => sum + (each.password_protected ? 0 : each.message_count), 0)
  return (
    <MailPanes
      list={list}
      total={q !== '' || inboxes.hasMore ? undefined : total}
      canDelete={session.allows('inboxes')}
      inboxNames={names}
      heading={
        <header class="list-heading">
          {q === '' ? <AllMailHeading list={list} /> : <SearchHeading q={q} />}
          {session.allows('admin') && (
            <FaultsNotice of={session.environment} title={text.faults.ofEnvironment} />
          )}
        </header>
      }
      empty={
        q === '' ? (
          <FirstSteps />
        ) : (
          <Empty title={text.search.none}>
            <p>{text.search.noneHint}</p>
          </Empty>
        )
      }
    />
  )
}

function AllMailHeading({ list: { messages, isLive } }: { list: MessageList }) {
  const { isRead, markAllRead } = useReadMail()
  const [notifies, setNotifies] = useNotifications()
  const toggle = async () => setNotifies(!notifies && (await Notification.requestPermission()) === 'granted')
  return (
    <div class="heading">
      <h1>{text.allMail}</h1>
      <Live isLive={isLive} />
      {'Notification' in globalThis && isSecureContext && (
        <IconButton
          of={notifies ? Bell : BellOff}
          label={text.mail.notify}
          aria-pressed={notifies}
          onClick={() => void toggle()}
        />
      )}
      <IconButton
        of={CheckCheck}
        label={text.mail.markAllRead}
        disabled={messages.every(isRead)}
        onClick={() => markAllRead(messages[0]?.received_at ?? '')}
      />
    </div>
  )
}

/** Whether new mail is shown as it arrives. */
export function Live({ isLive }: { isLive: boolean }) {
  return (
    <span class={isLive ? 'live' : 'not-live'} role="status">
      {isLive ? text.mail.live : text.mail.reconnecting}
    </span>
  )
}

/** The terms of a search, each of which can be removed. */
function SearchHeading({ q }: { q: string }) {
  const [, change] = useParameters()
  const [searches, saveSearches] = useSavedSearches()
  const terms = termsOf(q)
  const isSaved = searches.includes(q)
  const search = (left: string) => change({ q: left, message: undefined, inbox: undefined })
  return (
    <>
      <div class="heading">
        <h1>{text.search.title}</h1>
        <IconButton
          of={Bookmark}
          label={text.search.save}
          aria-pressed={isSaved}
          onClick={() => saveSearches(isSaved ? searches.filter((each) => each !== q) : [...searches, q])}
        />
        <IconButton of={X} label={text.search.clear} onClick={() => search('')} />
      </div>
      <ul class="terms">
        {terms.map((term, index) => (
          <li key={`${index} ${term}`}>
            <button
              type="button"
              class="chip"
              aria-label={text.search.remove(visibleLine(term))}
              onClick={() => search(terms.toSpliced(index, 1).join(' '))}
            >
              <bdi>{visibleLine(term)}</bdi> <Icon of={X} size={14} />
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}
