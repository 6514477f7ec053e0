import type { ComponentChildren } from 'preact'
import { useLocation } from 'preact-iso'
import { useOpen, useSession, ViewLink } from './navigation.js'
import { Choice } from './parts/controls.js'
import { text } from './text.js'

const VIEWS = [
  ['/inboxes', text.inboxes.title],
  ['/search', text.search.title],
  ['/domains', text.domains.title],
  ['/keys', text.keys.title],
  ['/webhooks', text.webhooks.title],
  ['/usage', text.usage.title],
  ['/account', text.account.title],
  ['/status', text.status.title],
] as const

/** What surrounds every view: its navigation, and the choice of the environment. */
export function Shell({ children }: { children: ComponentChildren }) {
  const session = useSession()
  const open = useOpen()
  const { path } = useLocation()
  return (
    <>
      <a class="skip" href="#view">
        {text.skipToView}
      </a>
      <header class="bar">
        <ViewLink to="/inboxes" class="brand">
          Mayfly
        </ViewLink>
        <nav aria-label={text.views}>
          {VIEWS.map(([to, title]) => (
            <ViewLink key={to} to={to} isCurrent={path.startsWith(`/console${to}`)}>
              {title}
            </ViewLink>
          ))}
        </nav>
        <Choice
          label={text.environment}
          value={session.environment}
          options={session.environments.map((name) => [name, name] as const)}
          onChange={(environment) => open('/inboxes', { environment })}
        />
        <button type="button" onClick={() => void session.signOut()}>
          {text.signOut}
        </button>
      </header>
      <main id="view" tabIndex={0}>
        {children}
      </main>
    </>
  )
}
