import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useSession } from '../navigation.js'
import { Choice, Field, FormDialog, type FormValues } from '../parts/controls.js'
import { formatBytes, formatCount, Time } from '../parts/format.js'
import { Failure, Show, useAction, useLoaded } from '../parts/loading.js'
import { goToProvider, listProviders } from '../session.js'
import { text } from '../text.js'
import { nameOf } from './member-access.js'
import { useEmails } from './members.js'

type Quota = Schemas['Quota']

/** Those that can be set for an environment or a key too. */
const SCOPED_QUOTAS = ['inboxes', 'inboxes-per-day', 'messages-per-day', 'stored-bytes'] as const

/** The plan, its limits, the quotas, and who is signed in. */
export function AccountView() {
  const { api, member } = useSession()
  const account = useLoaded((signal) => api.account({ signal }), [])
  return (
    <section>
      <h1>{text.account.title}</h1>
      <Show loaded={account}>
        {({ name, id, plan, limits, environments, created_at }) => (
          <dl>
            {member !== null && (
              <>
                <dt>{text.account.signedInAs}</dt>
                <dd>
                  {nameOf(member)}, {text.members.roles[member.role]}
                </dd>
              </>
            )}
            <dt>{text.name}</dt>
            <dd>
              {name} <code>{id}</code>
            </dd>
            <dt>{text.account.plan}</dt>
            <dd>{plan}</dd>
            <dt>{text.account.environments}</dt>
            <dd>{environments.join(', ')}</dd>
            <dt>{text.created}</dt>
            <dd>
              <Time value={created_at} />
            </dd>
            {limits !== null && (
              <>
                <dt>{text.account.requests}</dt>
                <dd>{text.keys.perMinute(limits.requests_per_minute)}</dd>
                <dt>{text.account.accountRequests}</dt>
                <dd>{text.keys.perMinute(limits.account_requests_per_minute)}</dd>
                <dt>{text.account.retention}</dt>
                <dd>{limits.retention}</dd>
                <dt>{text.account.messageSize}</dt>
                <dd>{formatBytes(limits.max_message_bytes)}</dd>
                <dt>{text.account.messages}</dt>
                <dd>{formatCount(limits.max_messages)}</dd>
              </>
            )}
          </dl>
        )}
      </Show>
      <Quotas />
      <LastDay />
      <SignIn />
      <Sessions />
    </section>
  )
}

/** What the account has of what it may have. */
function Quotas() {
  const session = useSession()
  const { api } = session
  const quotas = useLoaded((signal) => api.quotas.list({ signal }), [])
  const [changed, setChanged] = useState<Quota | 'new' | null>(null)
  const format = (name: Quota['name']) => (name === 'stored-bytes' ? formatBytes : formatCount)
  const close = () => setChanged(null)
  const done = () => {
    close()
    quotas.reload()
  }
  return (
    <>
      <div class="heading">
        <h2>{text.quotas.title}</h2>
        {session.allows('admin') && (
          <button type="button" onClick={() => setChanged('new')}>
            {text.quotas.add}
          </button>
        )}
      </div>
      <Show loaded={quotas}>
        {(list) => (
          <ul class="plain-list">
            {list.map((quota) => (
              <li key={titleOf(quota)} class="heading">
                <div class="quota">
                  {titleOf(quota)}:{' '}
                  {text.quotas.used(format(quota.name)(quota.used), format(quota.name)(quota.limit))}
                  <meter
                    aria-label={titleOf(quota)}
                    value={quota.used}
                    max={Math.max(quota.limit, 1)}
                    high={0.8 * quota.limit}
                    optimum={0}
                  />
                  {quota.resets_at !== null && (
                    <small>
                      {text.quotas.resets} <Time value={quota.resets_at} />
                    </small>
                  )}
                </div>
                {session.allows('admin') && (
                  <button
                    type="button"
                    aria-label={text.quotas.changeWhat(titleOf(quota))}
                    onClick={() => setChanged(quota)}
                  >
                    {text.change}
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Show>
      {changed === 'new' && <NewQuotaDialog onClose={close} onDone={done} />}
      {changed !== null && changed !== 'new' && (
        <FormDialog
          title={titleOf(changed)}
          action={text.save}
          submit={(values) => {
            const { name, environment, key_id: keyId } = changed
            const scope = { environment: environment ?? undefined, keyId: keyId ?? undefined }
            return api.quotas.set(name, { limit: limitIn(values), ...scope })
          }}
          onClose={close}
          onDone={done}
        >
          <LimitField name={changed.name} limit={changed.limit} />
        </FormDialog>
      )}
    </>
  )
}

function titleOf({ name, environment, key_id: key }: Quota): string {
  const scope = environment ?? key
  return scope === null ? text.quotas.names[name] : text.quotas.of(text.quotas.names[name], scope)
}

/** Limits an environment or a key, beside the account. */
function NewQuotaDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const { api } = useSession()
  const [name, setName] = useState<(typeof SCOPED_QUOTAS)[number]>('inboxes')
  const [chosen, setChosen] = useState<string | null>(null)
  const loaded = useLoaded(async (signal) => {
    const [{ environments }, keys] = await Promise.all([api.account({ signal }), api.keys.list({ signal })])
    const active = keys.filter(({ state }) => state === 'active')
    return [
      ...environments.map((each) => [each, text.quotas.environment(each)] as const),
      ...active.map((key) => [key.id, text.quotas.key(key.name)] as const),
    ]
  }, [])
  const scopes = loaded.value ?? []
  const scope = chosen ?? scopes[0]?.[0] ?? ''
  return (
    <FormDialog
      title={text.quotas.add}
      action={text.save}
      submit={(values) => {
        // No environment has an underscore in its name.
        const where = scope.startsWith('key_') ? { keyId: scope } : { environment: scope }
        return api.quotas.set(name, { limit: limitIn(values), ...where })
      }}
      onClose={onClose}
      onDone={onDone}
    >
      {loaded.error !== null && <Failure error={loaded.error} />}
      <Choice
        label={text.quotas.what}
        value={name}
        options={SCOPED_QUOTAS.map((each) => [each, text.quotas.names[each]] as const)}
        onChange={setName}
      />
      <Choice label={text.quotas.scope} value={scope} options={scopes} onChange={setChosen} />
      <LimitField name={name} limit={null} />
    </FormDialog>
  )
}

function LimitField({ name, limit }: { name: Quota['name']; limit: number | null }) {
  return (
    <Field
      label={name === 'stored-bytes' ? text.quotas.limitInBytes : text.quotas.limit}
      hint={limit === null ? text.quotas.newLimitHint : text.quotas.limitHint}
      name="limit"
      type="number"
      min={0}
      required={limit === null}
      defaultValue={limit === null ? '' : String(limit)}
    />
  )
}

/** Null for an empty field. */
function limitIn(values: FormValues): number | null {
  const limit = values.text('limit')
  return limit === '' ? null : Number(limit)
}

/** How much of the account was used within a day, by environment. */
function LastDay() {
  const { api } = useSession()
  const rows = useLoaded((signal) => api.usage.read({ interval: 'day', groupBy: 'environment', signal }), [])
  return (
    <>
      <h2>{text.account.used}</h2>
      <Show loaded={rows}>
        {(list) => (
          <ul class="plain-list">
            {list.length === 0 && <li>{text.usage.none}</li>}
            {list.map(({ group, from, requests, inboxes, mails, bytes }) => (
              <li key={`${group} ${from}`}>
                {text.account.usedIn(
                  group ?? text.none,
                  formatCount(requests),
                  formatCount(inboxes),
                  formatCount(mails),
                  formatBytes(bytes),
                )}
              </li>
            ))}
          </ul>
        )}
      </Show>
    </>
  )
}

/** How the member, and everybody else, signs in. Nothing is shown without identity providers. */
function SignIn() {
  const session = useSession()
  const { member } = session
  const loaded = useLoaded(async (signal) => {
    const [providers, account] = await Promise.all([listProviders(), session.api.account({ signal })])
    return { providers, account }
  }, [])
  const { isRunning, error, run } = useAction()
  const set = async (signIn: 'any' | 'provider') => {
    await run(() => session.api.setSignIn({ signIn }))
    loaded.reload()
  }
  const { providers, account } = loaded.value ?? { providers: [], account: null }
  if (account === null || providers.length === 0) return null
  return (
    <>
      <h2>{text.account.signIn}</h2>
      {error !== null && <Failure error={error} />}
      {member !== null && member.issuer !== null && <p>{text.account.signsInWith(member.issuer)}</p>}
      {member !== null && member.issuer === null && (
        <>
          <p>{text.account.signsInWithLinks}</p>
          {providers.map(({ name, title }) => (
            <p key={name}>
              <button
                type="button"
                disabled={isRunning}
                onClick={() => void run(() => goToProvider(name, { connect: true }))}
              >
                {text.account.connect(title)}
              </button>
            </p>
          ))}
        </>
      )}
      {session.allows('admin') && (
        <>
          <label class="check">
            <input
              type="checkbox"
              checked={account.sign_in === 'provider'}
              disabled={isRunning}
              onChange={({ currentTarget }) => void set(currentTarget.checked ? 'provider' : 'any')}
            />{' '}
            {text.account.requireProvider}
          </label>
          <small>{text.account.requireProviderHint}</small>
        </>
      )}
    </>
  )
}

/** The sessions of the console, each of which can be ended. */
function Sessions() {
  const session = useSession()
  const sessions = useLoaded(() => session.listSessions(), [])
  const emailOf = useEmails()
  const { isRunning, error, run } = useAction()
  const end = async (id: string) => {
    if (await run(() => session.endSession(id))) sessions.reload()
  }
  return (
    <>
      <div class="heading">
        <h2>{text.account.sessions}</h2>
        <button type="button" onClick={() => void run(() => session.signOutEverywhere())}>
          {text.account.signOutEverywhere}
        </button>
      </div>
      {error !== null && <Failure error={error} />}
      <Show loaded={sessions}>
        {(list) => (
          <ul class="plain-list">
            {list.map(({ id, created_at, expires_at, member_id, current }) => (
              <li key={id}>
                {text.account.signedIn} <Time value={created_at} />, {text.account.until}{' '}
                <Time value={expires_at} />
                {member_id !== null && ` · ${emailOf(member_id)}`}{' '}
                {current ? (
                  <strong>{text.account.thisSession}</strong>
                ) : (
                  <button
                    type="button"
                    disabled={isRunning}
                    aria-label={text.account.endWhat(id)}
                    onClick={() => void end(id)}
                  >
                    {text.account.end}
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Show>
    </>
  )
}
