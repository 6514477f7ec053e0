import { render, type ComponentType } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from 'preact-iso'
import { MailAccessContext, mayOpen, SessionContext, startOf, urlOf, type ViewPath } from './navigation.js'
import { Failure, useRetry } from './parts/loading.js'
import { isAlreadySignedIn, lacksRole, leave, Session, signIn } from './session.js'
import { SharedInboxView } from './shared-inbox.js'
import { Shell } from './shell.js'
import { text } from './text.js'
import { AccountView } from './views/account.js'
import { ActivityView } from './views/activity.js'
import { AllMailView } from './views/all-mail.js'
import { AuditView } from './views/audit.js'
import { DomainsView } from './views/domains.js'
import { SendingView } from './views/first-steps.js'
import { InboxesView } from './views/inboxes.js'
import { KeysView } from './views/keys.js'
import { MailView } from './views/mail.js'
import { MembersView } from './views/members.js'
import { RefusedView } from './views/refused.js'
import { ReplaceSessionView, SignInView } from './views/sign-in.js'
import { StatusView } from './views/status.js'
import { UsageView } from './views/usage.js'
import { WebhookView } from './views/webhook.js'
import { WebhooksView } from './views/webhooks.js'

/*
 * The web console. It signs in, then shows a view by its URL. All data comes from the HTTP API, through the client
 * library.
 */

/** The views, each with what follows the path of its group in the URL. */
const ROUTES: readonly (readonly [group: ViewPath, rest: string, view: ComponentType])[] = [
  ['/mail', '', AllMailView],
  ['/inboxes', '', InboxesView],
  ['/inboxes', '/:id', MailView],
  ['/refused', '', RefusedView],
  ['/smtp', '', SendingView],
  ['/keys', '', KeysView],
  ['/members', '', MembersView],
  ['/domains', '', DomainsView],
  ['/webhooks', '', WebhooksView],
  ['/webhooks', '/:id', WebhookView],
  ['/usage', '', UsageView],
  ['/activity', '', ActivityView],
  ['/audit', '', AuditView],
  ['/account', '', AccountView],
  ['/status', '', StatusView],
]

/** The secret of a sign-in link, which is removed from the URL at once, so that it does not stay in the history. */
function takeLinkSecret(): string | null {
  const [, secret = null] = /^#sign-in=(.+)$/.exec(location.hash) ?? []
  if (secret !== null) history.replaceState(null, '', location.pathname + location.search)
  return secret
}

/** Why signing in with an identity provider has failed, in words. */
function takeSignInError(): Error | null {
  const [, code = null] = /^#sign-in-error=([a-z-]+)$/.exec(location.hash) ?? []
  if (code === null) return null
  history.replaceState(null, '', location.pathname + location.search)
  return new Error(text.signIn.errors.get(code) ?? text.signIn.failed)
}

function environmentInUrl(): string | undefined {
  return new URLSearchParams(location.search).get('environment') ?? undefined
}

type State =
  | { step: 'opening' }
  | { step: 'signed-out'; error: unknown; hasEnded: boolean }
  | { step: 'asking'; error: unknown; secret: string }
  /** `error` says why a link was refused; null if none was. */
  | { step: 'signed-in'; session: Session; error: unknown }
  | { step: 'failed'; error: unknown }

function App() {
  const [state, setState] = useState<State>({ step: 'opening' })
  const current = useRef<State>(state)
  current.current = state
  const { path, query, route } = useLocation()
  const environment = state.step === 'signed-in' ? state.session.environment : undefined

  const open = useCallback(async (wanted: string | undefined, error: unknown = null) => {
    const onEnd = () => setState({ step: 'signed-out', error: null, hasEnded: true })
    const render = (session: Session) =>
      setState((now) => (now.step === 'signed-in' && now.session === session ? { ...now } : now))
    try {
      const session = await Session.open(wanted, onEnd, render)
      if (session === null) setState({ step: 'signed-out', error, hasEnded: false })
      else setState({ step: 'signed-in', session, error })
    } catch (failure) {
      setState({ step: 'failed', error: failure })
    }
  }, [])

  const redeem = useCallback(async (secret: string, { replace }: { replace: boolean }) => {
    try {
      await signIn(secret, { replace })
    } catch (error) {
      const now = current.current
      if (isAlreadySignedIn(error)) setState({ step: 'asking', error, secret })
      else if (now.step === 'signed-in') setState({ ...now, error })
      else await open(environmentInUrl(), error)
      return
    }
    await open(undefined)
  }, [])

  useRetry(state.step === 'failed' ? state.error : null, () => void open(query.environment))

  // Before the first paint, which takes about as long as a request.
  useLayoutEffect(() => {
    const start = (): boolean => {
      const secret = takeLinkSecret()
      if (secret !== null) void redeem(secret, { replace: false })
      return secret !== null
    }
    if (!start()) void open(query.environment, takeSignInError())
    // A link that is pasted into the tab of the page does not load it again.
    addEventListener('hashchange', start)
    return () => removeEventListener('hashchange', start)
  }, [])

  const isChanging = environment !== undefined && (query.environment ?? environment) !== environment
  useEffect(() => {
    if (isChanging) void open(query.environment)
  }, [environment, query.environment])

  useEffect(() => {
    if (state.step === 'signed-in' && path === '/console') {
      route(urlOf(startOf(state.session), { environment: state.session.environment }), true)
    }
  }, [state, path])

  // Views of the former environment would change the URL of the next one.
  if (isChanging) return <main class="loading">{text.loading}</main>
  switch (state.step) {
    case 'opening':
      return <main class="loading">{text.loading}</main>
    case 'failed':
      return (
        <main class="narrow">
          <Failure error={state.error} retry={() => void open(query.environment)} />
          {lacksRole(state.error) && (
            <button type="button" onClick={() => void leave()}>
              {text.signOut}
            </button>
          )}
        </main>
      )
    case 'signed-out':
      return (
        <SignInView
          error={state.error}
          hasEnded={state.hasEnded}
          onSignedIn={() => void open(query.environment)}
        />
      )
    case 'asking':
      return (
        <ReplaceSessionView
          error={state.error}
          onReplace={() => void redeem(state.secret, { replace: true })}
          onKeep={() => void open(query.environment)}
        />
      )
    case 'signed-in':
      return (
        <SessionContext.Provider
          value={state.session}
          key={`${state.session.id} ${state.session.environment}`}
        >
          <MailAccessContext.Provider value={state.session}>
            <Shell>
              {state.error !== null && (
                <Failure error={state.error} onClose={() => setState({ ...state, error: null })} />
              )}
              <ErrorBoundary>
                <Router>
                  {ROUTES.filter(([group]) => mayOpen(state.session, group)).map(([group, rest, view]) => (
                    <Route key={group + rest} path={`/console${group}${rest}`} component={view} />
                  ))}
                  <Route default component={NotFound} />
                </Router>
              </ErrorBoundary>
            </Shell>
          </MailAccessContext.Provider>
        </SessionContext.Provider>
      )
  }
}

/** The page of a shared inbox needs no session. */
function Page() {
  const { path } = useLocation()
  return path === '/console/inbox' ? <SharedInboxView /> : <App />
}

function NotFound() {
  return <p class="empty">{text.notFound}</p>
}

const root = document.getElementById('console')
if (root !== null) {
  render(
    <LocationProvider scope="/console">
      <Page />
    </LocationProvider>,
    root,
  )
}
