import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useDialog, useSession, ViewLink } from '../navigation.js'
import {
  Choice,
  Command,
  Empty,
  Field,
  FormDialog,
  Secret,
  type FormValues,
  Table,
} from '../parts/controls.js'
import { formatBytes, formatCount, Time } from '../parts/format.js'
import { Show, useLoaded } from '../parts/loading.js'
import type { Session } from '../session.js'
import { text } from '../text.js'
import { useEmails } from './members.js'

type Key = Schemas['Key']

type Lifetime = keyof typeof text.keys.lifetimes

const LIFETIMES = Object.entries(text.keys.lifetimes) as unknown as [`${Lifetime}`, string][]
const DAY_MS = 86_400_000

const SCOPES = ['inboxes', 'read', 'audit', 'admin'] as const
type Scope = (typeof SCOPES)[number]

type Owner = Key['owner']
const OWNERS = Object.entries(text.keys.owners) as [Owner, string][]

/** Whether the session may give a scope to a key. A key with `admin` can issue others, which may read mail. */
function mayGive(session: Session, scope: Scope): boolean {
  if (scope === 'read') return session.readsMail
  return session.allows(scope) && (scope !== 'admin' || session.readsMail)
}

interface Dialog {
  kind: 'rotate' | 'revoke'
  key: Key
}

/** The API keys of the account; for a member without the scope `admin`, its own. */
export function KeysView() {
  const session = useSession()
  const { api } = session
  const keys = useLoaded((signal) => api.keys.list({ order: 'desc', signal }), [])
  const [isCreating, setCreating] = useDialog('create')
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const close = () => {
    setDialog(null)
    if (isCreating) setCreating(false)
    keys.reload()
  }
  return (
    <section>
      <div class="heading">
        <h1>{text.keys.title}</h1>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          {text.keys.create}
        </button>
      </div>
      <p>{session.allows('admin') ? text.keys.about : text.keys.aboutOwn}</p>
      <Show loaded={keys}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={text.keys.none} />
          ) : (
            <KeyTable
              keys={list}
              onRotate={(key) => setDialog({ kind: 'rotate', key })}
              onRevoke={(key) => setDialog({ kind: 'revoke', key })}
            />
          )
        }
      </Show>
      {isCreating && <CreateDialog onClose={close} />}
      {dialog?.kind === 'rotate' && <RotateDialog apiKey={dialog.key} onClose={close} />}
      {dialog?.kind === 'revoke' && (
        <FormDialog
          title={text.keys.revokeTitle(dialog.key.name)}
          action={text.revoke}
          isDangerous
          submit={() => api.keys.revoke(dialog.key.id)}
          onClose={close}
          onDone={close}
        >
          <p>{text.keys.revokeWarning}</p>
        </FormDialog>
      )}
    </section>
  )
}

function KeyTable({
  keys,
  onRotate,
  onRevoke,
}: {
  keys: readonly Key[]
  onRotate: (key: Key) => void
  onRevoke: (key: Key) => void
}) {
  const session = useSession()
  const emailOf = useEmails()
  const mayRotate = ({ owner, member_id, scopes }: Key) =>
    (owner === 'service' || member_id === session.member?.id) &&
    scopes.every((scope) => scope !== 'operator' && mayGive(session, scope))
  return (
    <Table
      columns={[
        text.name,
        text.keys.owner,
        text.environment,
        text.keys.scopes,
        text.keys.limit,
        text.keys.lastUsed,
        text.keys.expires,
        text.usage.title,
        text.actions,
      ]}
      class="many-columns"
    >
      {keys.map((key) => (
        <tr key={key.id} class={key.state}>
          <td>
            <strong>{key.name}</strong>
            <br />
            <code>{key.prefix}…</code>
          </td>
          <td>
            {text.keys.owners[key.owner]}
            {key.member_id !== null && (
              <>
                <br />
                <small>{emailOf(key.member_id)}</small>
              </>
            )}
          </td>
          <td>{key.environment}</td>
          <td>{key.scopes.join(', ')}</td>
          <td>{key.rate_limit === null ? text.keys.limitOfPlan : text.keys.perMinute(key.rate_limit)}</td>
          <td>
            <Time value={key.last_used_at} isRelative />
          </td>
          <td>{key.expires_at === null ? text.keys.never : <Time value={key.expires_at} />}</td>
          <td>
            {key.usage !== null && (
              <ViewLink to="/usage" parameters={{ group: 'key' }}>
                {text.keys.usage(
                  formatCount(key.usage.requests),
                  formatCount(key.usage.mails),
                  formatBytes(key.usage.bytes),
                )}
              </ViewLink>
            )}
          </td>
          <td class="buttons">
            {key.state === 'active' ? (
              <>
                {mayRotate(key) && (
                  <button
                    type="button"
                    aria-label={text.keys.rotateWhat(key.name)}
                    onClick={() => onRotate(key)}
                  >
                    {text.keys.rotate}
                  </button>
                )}
                <button
                  type="button"
                  aria-label={text.keys.revokeTitle(key.name)}
                  onClick={() => onRevoke(key)}
                >
                  {text.revoke}
                </button>
              </>
            ) : (
              text.keys.ended[key.state]
            )}
          </td>
        </tr>
      ))}
    </Table>
  )
}

/** The secret of a new key, and a first command that its scopes allow. */
function NewSecret({ secret, scopes, onClose }: Schemas['KeyWithSecret'] & { onClose: () => void }) {
  const request = scopes.includes('inboxes')
    ? `-X POST ${location.origin}/v1/inboxes`
    : `${location.origin}/v1/usage`
  const command = `curl ${request} -H 'Authorization: Bearer ${secret}'`
  return (
    <FormDialog title={text.keys.made} onClose={onClose}>
      <Secret label={text.keys.secret} value={secret} />
      <Command intro={text.keys.tryIt} command={command} />
    </FormDialog>
  )
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const session = useSession()
  const isAdmin = session.allows('admin')
  const givable = SCOPES.filter((scope) => mayGive(session, scope))
  const [owner, setOwner] = useState<Owner>(isAdmin ? 'service' : 'personal')
  const [environment, setEnvironment] = useState(session.environment)
  const [issued, setIssued] = useState<Schemas['KeyWithSecret'] | null>(null)
  const [lifetime, setLifetime] = useState<`${Lifetime}`>('365')
  if (issued !== null) return <NewSecret {...issued} onClose={onClose} />
  const submit = async (values: FormValues) => {
    const scopes = givable.filter((scope) => values.isChecked(scope))
    if (scopes.length === 0) throw new Error(text.keys.noScope)
    const rateLimit = values.text('limit')
    const key = await session.api.keys.issue({
      name: values.text('name'),
      environment,
      scopes,
      owner,
      rateLimit: rateLimit === '' ? null : Number(rateLimit),
      expiresAt: expiryOf(lifetime, values),
    })
    setIssued(key)
    if (!session.environments.includes(key.environment)) await session.renew()
  }
  return (
    <FormDialog title={text.keys.create} action={text.create} submit={submit} onClose={onClose}>
      <Field label={text.name} name="name" required maxLength={100} />
      {isAdmin && session.member !== null && (
        <Choice label={text.keys.owner} value={owner} options={OWNERS} onChange={setOwner} />
      )}
      {session.member !== null && <p>{text.keys.aboutOwner[owner]}</p>}
      {(session.member?.environments ?? null) === null ? (
        <Field
          label={text.environment}
          hint={text.keys.environmentHint}
          required
          pattern="[a-z][a-z0-9\-]{0,31}"
          value={environment}
          onInput={({ currentTarget }) => setEnvironment(currentTarget.value)}
        />
      ) : (
        <Choice
          label={text.environment}
          value={environment}
          options={session.environments.map((name) => [name, name] as const)}
          onChange={setEnvironment}
        />
      )}
      <fieldset>
        <legend>{text.keys.scopes}</legend>
        {givable.map((scope) => (
          <label key={scope} class="check">
            <input type="checkbox" name={scope} defaultChecked={scope === givable[0]} />{' '}
            <strong>{scope}</strong> {text.keys.scope[scope]}
          </label>
        ))}
      </fieldset>
      <Choice label={text.keys.lifetime} value={lifetime} options={LIFETIMES} onChange={setLifetime} />
      {lifetime === 'custom' && (
        <Field label={text.keys.expiryTime} name="expiryTime" type="datetime-local" required />
      )}
      {lifetime === 'never' && (
        <label class="check">
          <input type="checkbox" required /> {text.keys.confirmNever}
        </label>
      )}
      <Field label={text.keys.limit} hint={text.keys.limitHint} name="limit" type="number" min={1} />
    </FormDialog>
  )
}

function expiryOf(lifetime: `${Lifetime}`, values: FormValues): string | null {
  if (lifetime === 'never') return null
  if (lifetime === 'custom') return new Date(values.text('expiryTime')).toISOString()
  return new Date(Date.now() + Number(lifetime) * DAY_MS).toISOString()
}

function RotateDialog({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
  const { api } = useSession()
  const [rotated, setRotated] = useState<Schemas['KeyWithSecret'] | null>(null)
  if (rotated !== null) return <NewSecret {...rotated} onClose={onClose} />
  return (
    <FormDialog
      title={text.keys.rotateWhat(apiKey.name)}
      action={text.keys.rotate}
      submit={async (values) => {
        const grace = values.text('grace') || '0'
        setRotated(await api.keys.rotate(apiKey.id, { grace }))
      }}
      onClose={onClose}
    >
      <Field label={text.grace} hint={text.keys.graceHint} name="grace" placeholder="10m" />
    </FormDialog>
  )
}
