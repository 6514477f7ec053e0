import { createContext, type ComponentChildren } from 'preact'
import { useContext } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import type { OpenFeed } from './feed.js'
import type { Loaded } from './parts/loading.js'
import type { MailAccess, Session } from './session.js'
import type { InboxList } from './views/inbox-list.js'
import type { MessageList } from './views/message-list.js'

/*
 * Every view has a URL: its path, the environment, and what is selected in the view.
 */

export const SessionContext = createContext<Session | null>(null)

/** What the page knows of its environment, for as long as it is open. */
export interface Environment {
  feed: OpenFeed
  mail: MessageList
  /** Active ones. */
  inboxes: InboxList
  /** The recipients that were last refused. */
  refused: Loaded<Schemas['RefusedMail'][]>
  /** Opens the dialog that creates an inbox, and then the inbox. */
  createInbox: () => void
}

export const EnvironmentContext = createContext<Environment | null>(null)

/** Only for components that are shown when somebody is signed in. */
export function useEnvironment(): Environment {
  const environment = useContext(EnvironmentContext)
  if (environment === null) throw new Error('nobody is signed in')
  return environment
}

/** What the reader of mail needs: a session, or the token of one inbox. */
export const MailAccessContext = createContext<MailAccess | null>(null)

export function useMailAccess(): MailAccess {
  const access = useContext(MailAccessContext)
  if (access === null) throw new Error('there is no access to mail')
  return access
}

/** The session of the page. Only for components that are shown when somebody is signed in. */
export function useSession(): Session {
  const session = useContext(SessionContext)
  if (session === null) throw new Error('nobody is signed in')
  return session
}

const READERS = ['inboxes', 'read'] as const

/** The scopes that each view needs, one of each list. In the order in which the views are offered. */
const REQUIRED_SCOPES = {
  '/mail': [READERS],
  '/refused': [READERS],
  '/inboxes': [READERS],
  '/smtp': [READERS],
  '/domains': [['admin']],
  '/keys': [],
  '/members': [['admin']],
  '/webhooks': [['admin'], READERS],
  '/usage': [],
  '/activity': [['admin', 'audit']],
  '/audit': [['audit']],
  '/account': [],
  '/status': [],
} as const

export type ViewPath = keyof typeof REQUIRED_SCOPES

/** Whether the session has the scopes that a view needs. */
export function mayOpen(session: Session, path: ViewPath): boolean {
  // An audit log is that of the whole account.
  if (path === '/audit' && session.member?.environments != null) return false
  return REQUIRED_SCOPES[path].every((scopes) => session.allows(...scopes))
}

/** The view that opens first. */
export function startOf(session: Session): ViewPath {
  const paths = Object.keys(REQUIRED_SCOPES) as ViewPath[]
  return paths.find((path) => mayOpen(session, path)) ?? '/account'
}

/** Parameters of a URL. Those that are empty are left out. */
export type Parameters = Readonly<Record<string, string | undefined>>

function queryOf(parameters: Parameters): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value)
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/** The URL of a view. */
export function urlOf(path: string, parameters: Parameters): string {
  return `/console${path}${queryOf(parameters)}`
}

/**
 * The link to the page of a shared inbox. It says whether the token may erase the inbox, because a token can't be asked for
 * its access.
 */
export function sharedInboxUrl(token: string, access: 'read' | 'owner'): string {
  return `${location.origin}/console/inbox${access === 'owner' ? '?access=owner' : ''}#${token}`
}

/**
 * Parameters of the current URL, a function that changes some of them, and one that gives the URL of such a change. A change
 * adds to the history only if `adds` is true, so that Back leads to the URL before. The fragment stays, since the token of a
 * shared inbox is in it.
 */
export function useParameters(): [
  Parameters,
  change: (changes: Parameters, adds?: boolean) => void,
  urlWith: (changes: Parameters) => string,
] {
  const { query, route } = useLocation()
  const urlWith = (changes: Parameters) => {
    // Another change may have been made since this was rendered.
    const now = Object.fromEntries(new URLSearchParams(location.search))
    return `${location.pathname}${queryOf({ ...now, ...changes })}${location.hash}`
  }
  return [query, (changes, adds = false) => route(urlWith(changes), !adds), urlWith]
}

/** Whether a dialog is open, which is in the URL, so that a link opens it too. */
export function useDialog(
  name: 'create' | 'delete-all',
): [isOpen: boolean, setOpen: (isOpen: boolean) => void] {
  const [{ dialog }, change] = useParameters()
  return [dialog === name, (isOpen) => change({ dialog: isOpen ? name : undefined })]
}

/** A function that opens a view of this environment. */
export function useOpen(): (path: string, parameters?: Parameters) => void {
  const { environment } = useSession()
  const { route } = useLocation()
  return (path, parameters = {}) => route(urlOf(path, { environment, ...parameters }))
}

/** A link to a view of this environment. */
export function ViewLink({
  to,
  parameters = {},
  children,
  ...rest
}: {
  to: string
  parameters?: Parameters
  children: ComponentChildren
  class?: string
  title?: string
  isCurrent?: boolean
}) {
  const { environment } = useSession()
  const { isCurrent = false, ...attributes } = rest
  return (
    <a
      href={urlOf(to, { environment, ...parameters })}
      {...attributes}
      {...(isCurrent ? { 'aria-current': 'page' as const } : {})}
    >
      {children}
    </a>
  )
}
