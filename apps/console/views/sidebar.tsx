import {
  Activity,
  ArrowUpRight,
  BookOpen,
  Bookmark,
  ChartColumn,
  CircleUser,
  Globe,
  Inbox as InboxIcon,
  KeyRound,
  List,
  LogOut,
  Mail,
  MailX,
  Plug,
  Plus,
  ScrollText,
  ShieldCheck,
  ShieldX,
  Users,
  Webhook,
  X,
  type IconNode,
} from 'lucide'
import { useEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import {
  mayOpen,
  startOf,
  useEnvironment,
  useOpen,
  useParameters,
  useSession,
  ViewLink,
  type ViewPath,
} from '../navigation.js'
import { Choice } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Icon, IconButton } from '../parts/icon.js'
import { useLoaded } from '../parts/loading.js'
import { useSplitter } from '../parts/splitter.js'
import { useStored } from '../parts/stored.js'
import { visibleLine } from '../parts/visible-text.js'
import { text } from '../text.js'
import { nameOf } from './member-access.js'
import { isActive, type ListedInbox } from './inbox-list.js'
import type { ListedMessage } from './message-list.js'

/** As many inboxes are listed here; the view of inboxes has all. */
const MAX_INBOXES = 100

/** The views besides those of mail. `create` is what the dialog of the view does. */
export const VIEWS: readonly (readonly [path: ViewPath, title: string, icon: IconNode, create?: string])[] = [
  ['/smtp', text.first.settingsTitle, Plug],
  ['/domains', text.domains.title, Globe, text.domains.create],
  ['/keys', text.keys.title, KeyRound, text.keys.create],
  ['/members', text.members.title, Users, text.members.invite],
  ['/webhooks', text.webhooks.title, Webhook, text.webhooks.register],
  ['/usage', text.usage.title, ChartColumn],
  ['/activity', text.activity.title, ScrollText],
  ['/audit', text.audit.title, ShieldCheck],
  ['/account', text.account.title, CircleUser],
  ['/status', text.status.title, Activity],
]

/** Searches that this browser keeps. */
export const useSavedSearches = () => useStored<readonly string[]>('searches', [])

/** The environment, its mail, the other views, and who is signed in. */
export function Sidebar({
  unread,
  isOpen,
  onClose,
}: {
  unread: readonly ListedMessage[]
  isOpen: boolean
  onClose: () => void
}) {
  const session = useSession()
  const open = useOpen()
  const { path } = useLocation()
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    if (isOpen) nav.current?.querySelector<HTMLElement>('button, a')?.focus()
  }, [isOpen])
  const { value: others = [] } = useLoaded(
    async () => (session.member?.issuer == null ? [] : session.listAccounts()),
    [],
  )
  const { width, splitter } = useSplitter('sidebar', text.widthOf(text.views), [180, 248, 420])
  return (
    <>
      {isOpen && <div class="backdrop" onClick={onClose} />}
      <nav
        ref={nav}
        class={`sidebar ${isOpen ? 'open' : ''}`}
        aria-label={text.views}
        style={{ width: `${width}px` }}
        onKeyDown={({ key }) => {
          if (key === 'Escape') onClose()
        }}
      >
        {others.length > 0 && (
          <Choice
            label={text.accountName}
            value={session.account.id}
            options={[session.account, ...others].map(({ id, name }) => [id, name] as const)}
            onChange={(id) => void session.switchTo(id)}
          />
        )}
        <Choice
          label={text.environment}
          value={session.environment}
          options={session.environments.map((name) => [name, name] as const)}
          onChange={(environment) => open(startOf(session), { environment })}
        />
        {session.readsMail && <MailLinks unread={unread} />}
        <ul class="views">
          {VIEWS.filter(([to]) => mayOpen(session, to)).map(([to, title, icon, create]) => (
            <li key={to}>
              <ViewLink to={to} isCurrent={path.startsWith(`/console${to}`)}>
                <Icon of={icon} /> <span class="name">{title}</span>
              </ViewLink>
              {create !== undefined && (
                <ViewLink to={to} parameters={{ dialog: 'create' }} class="icon-button" title={create}>
                  <Icon of={Plus} />
                  <span class="hidden">{create}</span>
                </ViewLink>
              )}
            </li>
          ))}
          <li>
            <a href="/docs" target="_blank">
              <Icon of={BookOpen} /> <span class="name">{text.apiReference}</span>
              <Icon of={ArrowUpRight} size={14} />
            </a>
          </li>
          {session.member !== null && (
            <li class="signed-in" title={nameOf(session.member)}>
              <span class="name">{nameOf(session.member)}</span> {text.members.roles[session.member.role]}
            </li>
          )}
          <li>
            <button type="button" onClick={() => void session.signOut()}>
              <Icon of={LogOut} /> <span class="name">{text.signOut}</span>
            </button>
          </li>
        </ul>
      </nav>
      {splitter}
    </>
  )
}

/** All mail, what was refused, saved searches, and the inboxes. */
function MailLinks({ unread }: { unread: readonly ListedMessage[] }) {
  const { mail, inboxes, refused, createInbox } = useEnvironment()
  const mayChange = useSession().allows('inboxes')
  const open = useOpen()
  const { path } = useLocation()
  const [{ q = '' }] = useParameters()
  const [searches, saveSearches] = useSavedSearches()
  const unreadOf = new Map<string, number>()
  for (const { inbox_id } of unread) unreadOf.set(inbox_id, (unreadOf.get(inbox_id) ?? 0) + 1)
  const refusedCount = refused.value?.length ?? 0
  const newest = inboxesOf(inboxes.inboxes, mail.messages)
  return (
    <>
      {mayChange && (
        <button type="button" class="primary create" onClick={createInbox}>
          <Icon of={Plus} /> {text.inboxes.create}
        </button>
      )}
      <ul>
        <li>
          <ViewLink to="/mail" isCurrent={path === '/console/mail' && q === ''}>
            <Icon of={Mail} />
            <span class="name">{text.allMail}</span>
            <Unread count={unread.length} />
          </ViewLink>
        </li>
        <li>
          <ViewLink to="/refused" isCurrent={path === '/console/refused'}>
            <Icon of={ShieldX} />
            <span class="name">{text.refused.title}</span>
            {refusedCount > 0 && <span class="muted">{refusedCount}</span>}
          </ViewLink>
        </li>
        {searches.map((search) => (
          <li key={search}>
            <ViewLink to="/mail" parameters={{ q: search }} isCurrent={q === search}>
              <Icon of={Bookmark} />
              <bdi class="name">{visibleLine(search)}</bdi>
            </ViewLink>
            <IconButton
              of={X}
              label={text.search.forget(visibleLine(search))}
              onClick={() => saveSearches(searches.filter((each) => each !== search))}
            />
          </li>
        ))}
      </ul>
      <h2>
        {text.inboxes.title}
        <ViewLink to="/inboxes" class="icon-button" title={text.inboxes.manage}>
          <Icon of={List} />
          <span class="hidden">{text.inboxes.manage}</span>
        </ViewLink>
      </h2>
      <ul class="inboxes">
        {newest.map(({ id, name, address, lastMailAt, hasMail }) => (
          <li key={id}>
            <ViewLink to={`/inboxes/${id}`} title={address} isCurrent={path === `/console/inboxes/${id}`}>
              <Icon of={InboxIcon} />
              <bdi class="name">{name}</bdi>
              <Unread count={unreadOf.get(id) ?? 0} />
              {lastMailAt !== null && <Time value={lastMailAt} isShort />}
            </ViewLink>
            {hasMail && mayChange && (
              <IconButton
                of={MailX}
                label={text.mail.deleteAllOf(name)}
                onClick={() => open(`/inboxes/${id}`, { dialog: 'delete-all' })}
              />
            )}
          </li>
        ))}
      </ul>
    </>
  )
}

/** The inboxes with the newest mail, or that are new themselves; also those that are known by their mail only. */
function inboxesOf(listed: readonly ListedInbox[], messages: readonly ListedMessage[]) {
  const known = listed
    .filter(isActive)
    .map(({ id, name, address, created_at, last_message_at, message_count }) => ({
      id,
      name: name ?? address,
      address,
      lastMailAt: last_message_at,
      usedAt: last_message_at ?? created_at,
      hasMail: message_count > 0,
    }))
  const others = new Map<string, (typeof known)[number]>()
  const ids = new Set(known.map(({ id }) => id))
  for (const { inbox_id: id, recipient: address, received_at: at } of messages) {
    if (!ids.has(id) && !others.has(id))
      others.set(id, { id, name: address, address, lastMailAt: at, usedAt: at, hasMail: true })
  }
  return [...known, ...others.values()].sort((a, b) => (a.usedAt < b.usedAt ? 1 : -1)).slice(0, MAX_INBOXES)
}

function Unread({ count }: { count: number }) {
  if (count === 0) return null
  return (
    <span class="badge">
      {count > 99 ? '99+' : count}
      <span class="hidden"> {text.mail.unread}</span>
    </span>
  )
}
