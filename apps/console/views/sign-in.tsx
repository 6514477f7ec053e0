import { Field, FormValues } from '../parts/controls.js'
import { Failure, useAction, useLoaded } from '../parts/loading.js'
import { goToProvider, listProviders, signIn } from '../session.js'
import { text } from '../text.js'

/** Signs in with an identity provider or an API key. A sign-in link needs no form. `error` says why a link was refused. */
export function SignInView({
  error,
  hasEnded,
  onSignedIn,
}: {
  error: unknown
  hasEnded: boolean
  onSignedIn: () => void
}) {
  const action = useAction()
  const providers = useLoaded(listProviders, [])
  const submit = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const secret = new FormValues(event.currentTarget).text('secret')
    if (await action.run(() => signIn(secret, { replace: true }))) onSignedIn()
  }
  const shown = action.error ?? error
  return (
    <main class="narrow">
      <h1>Mayfly</h1>
      {hasEnded && <p role="status">{text.signIn.ended}</p>}
      {shown !== null && <Failure error={shown} />}
      {(providers.value ?? []).map(({ name, title }) => (
        <p key={name}>
          <button
            type="button"
            class="primary"
            onClick={() => void action.run(() => goToProvider(name, { connect: false }))}
          >
            {text.signIn.with(title)}
          </button>
        </p>
      ))}
      <form onSubmit={(event) => void submit(event)}>
        <Field
          label={text.signIn.key}
          hint={text.signIn.keyHint}
          name="secret"
          type="password"
          required
          maxLength={300}
        />
        <div class="actions">
          <button type="submit" class="primary" disabled={action.isRunning}>
            {action.isRunning ? text.working : text.signIn.action}
          </button>
        </div>
      </form>
      <p>{text.signIn.link}</p>
      <pre>
        <code>npx mayfly console</code>
      </pre>
    </main>
  )
}

/** Asks whether a sign-in link may replace the session of the browser. `error` says whose session and link they are. */
export function ReplaceSessionView({
  error,
  onReplace,
  onKeep,
}: {
  error: unknown
  onReplace: () => void
  onKeep: () => void
}) {
  return (
    <main class="narrow">
      <h1>Mayfly</h1>
      <Failure error={error} />
      <div class="actions">
        <button type="button" onClick={onReplace}>
          {text.signIn.replace}
        </button>
        <button type="button" class="primary" onClick={onKeep}>
          {text.signIn.keep}
        </button>
      </div>
    </main>
  )
}
