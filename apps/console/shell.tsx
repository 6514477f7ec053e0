import { Menu } from 'lucide'
import type { ComponentChildren } from 'preact'
import { useLocation } from 'preact-iso'
import { useEffect, useState } from 'preact/hooks'
import { useFeed } from './feed.js'
import { EnvironmentContext, startOf, useOpen, useSession, ViewLink } from './navigation.js'
import { IconButton } from './parts/icon.js'
import { KeysSheet } from './parts/keys.js'
import { Failure, useLoaded } from './parts/loading.js'
import { Logo } from './parts/logo.js'
import { useReadMail } from './parts/stored.js'
import { text } from './text.js'
import { InboxDialog } from './views/inbox-dialog.js'
import { useInboxList } from './views/inbox-list.js'
import { useAllMail } from './views/message-list.js'
import { SearchBox } from './views/search-box.js'
import { Sidebar } from './views/sidebar.js'
import { useUnreadTitle } from './views/unread-title.js'

/** How often the recipients that were refused are read again. */
const REFUSED_EVERY_MS = 10_000

/** What surrounds every view: the search, and the sidebar. */
export function Shell({ children }: { children: ComponentChildren }) {
  const session = useSession()
  const open = useOpen()
  const { url } = useLocation()
  const feed = useFeed(session)
  const mail = useAllMail(session, feed, '')
  const inboxes = useInboxList(session, feed, {})
  const refused = useLoaded(
    async (signal) => (session.readsMail ? session.api.messages.listRefused({ signal }) : []),
    [session.readsMail],
    REFUSED_EVERY_MS,
  )
  const [isMenuOpen, setMenuOpen] = useState(false)
  const [isCreating, setCreating] = useState(false)
  const { isRead } = useReadMail()
  const unread = mail.messages.filter((each) => !isRead(each))
  useUnreadTitle(mail, unread.length)
  useEffect(() => setMenuOpen(false), [url])
  const closeMenu = () => {
    setMenuOpen(false)
    document.querySelector<HTMLElement>('.menu-button')?.focus()
  }
  return (
    <EnvironmentContext.Provider
      value={{ feed, mail, inboxes, refused, createInbox: () => setCreating(true) }}
    >
      <a class="skip" href="#view">
        {text.skipToView}
      </a>
      <header class="bar">
        <IconButton
          of={Menu}
          class="menu-button"
          label={text.menu}
          aria-expanded={isMenuOpen}
          onClick={() => setMenuOpen(!isMenuOpen)}
        />
        <ViewLink to={startOf(session)} class="brand">
          <Logo /> <span>Mayfly</span>
        </ViewLink>
        {session.readsMail && <SearchBox />}
      </header>
      <div class="shell">
        <Sidebar unread={unread} isOpen={isMenuOpen} onClose={closeMenu} />
        <main id="view" tabIndex={-1}>
          {feed.error !== null && <Failure error={feed.error} retry={feed.restart} />}
          {children}
        </main>
      </div>
      <KeysSheet />
      {isCreating && (
        <InboxDialog
          onClose={() => setCreating(false)}
          onSaved={(inbox) => {
            inboxes.put(inbox)
            open(`/inboxes/${inbox.id}`)
          }}
        />
      )}
    </EnvironmentContext.Provider>
  )
}
