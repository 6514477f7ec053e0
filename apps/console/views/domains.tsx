import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useDialog, useSession } from '../navigation.js'
import { CopyButton, Empty, Field, FormDialog, type FormValues, Table } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Failure, Show, useAction, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'

type Domain = Schemas['Domain']

const ACTIONS = ['create', 'deliver', 'reject'] as const

/** Domains are checked every minute at first. */
const REFRESH_MS = 10_000

/** The domains of the account, with the DNS records that each needs. */
export function DomainsView() {
  const { api } = useSession()
  const domains = useLoaded((signal) => api.domains.list({ order: 'desc', signal }), [], REFRESH_MS)
  const [isCreating, setCreating] = useDialog('create')
  return (
    <section>
      <div class="heading">
        <h1>{text.domains.title}</h1>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          {text.domains.create}
        </button>
      </div>
      <p>{text.domains.about}</p>
      <Show loaded={domains}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={text.domains.none} />
          ) : (
            list.map((domain) => <DomainPart key={domain.id} domain={domain} onChanged={domains.reload} />)
          )
        }
      </Show>
      {isCreating && (
        <DomainDialog
          domain={null}
          onClose={() => {
            setCreating(false)
            domains.reload()
          }}
        />
      )}
    </section>
  )
}

function DomainPart({ domain, onChanged }: { domain: Domain; onChanged: () => void }) {
  const { api } = useSession()
  const { isRunning, error, run } = useAction()
  const [dialog, setDialog] = useState<'change' | 'delete' | null>(null)
  const { id, name, state, environment, catch_all: catchAll } = domain
  const verify = async () => {
    if (await run(() => api.domains.verify(id))) onChanged()
  }
  return (
    <article class="domain">
      <div class="heading">
        <h2>{name}</h2>
        <div class="buttons">
          {!domain.hosted && (
            <button
              type="button"
              aria-label={text.domains.checkWhat(name)}
              disabled={isRunning}
              onClick={() => void verify()}
            >
              {isRunning ? text.working : text.domains.check}
            </button>
          )}
          <button
            type="button"
            aria-label={text.domains.changeTitle(name)}
            onClick={() => setDialog('change')}
          >
            {text.change}
          </button>
          <button
            type="button"
            aria-label={text.domains.deleteTitle(name)}
            onClick={() => setDialog('delete')}
          >
            {text.delete}
          </button>
        </div>
      </div>
      <p>
        <span class={`state ${state}`}>
          {domain.name_taken ? text.domains.nameTaken : text.domains.state[state]}
        </span>{' '}
        · {environment} · {text.domains.others(text.domains.catchAll[catchAll.action])}
        {domain.checked_at !== null && (
          <>
            {' '}
            · {text.domains.checked} <Time value={domain.checked_at} isRelative />
          </>
        )}
      </p>
      {error !== null && <Failure error={error} />}
      {domain.records.length > 0 && <Records records={domain.records} />}
      {dialog === 'change' && (
        <DomainDialog
          domain={domain}
          onClose={() => {
            setDialog(null)
            onChanged()
          }}
        />
      )}
      {dialog === 'delete' && (
        <FormDialog
          title={text.domains.deleteTitle(name)}
          action={text.delete}
          isDangerous
          submit={() => api.domains.delete(id)}
          onClose={() => setDialog(null)}
          onDone={onChanged}
        >
          <p>{text.domains.deleteWarning}</p>
        </FormDialog>
      )}
    </article>
  )
}

/** The DNS records to publish, with what was found instead. */
function Records({ records }: Pick<Domain, 'records'>) {
  return (
    <Table columns={[text.domains.type, text.name, text.domains.value, text.domains.status]}>
      {records.map(({ type, name, zone_name: zoneName, value, priority, status, found }) => (
        <tr key={`${type} ${name}`}>
          <td>{type}</td>
          <td>
            <code>{name}</code> <CopyButton value={name} label={text.copyWhat(name)} />
            <br />
            <small>
              {text.domains.inZone} <code>{zoneName}</code>{' '}
              <CopyButton value={zoneName} label={text.copyWhat(zoneName)} />
            </small>
          </td>
          <td>
            <code>{priority === null ? value : `${priority} ${value}`}</code>{' '}
            <CopyButton value={value} label={text.copyWhat(value)} />
          </td>
          <td>
            {text.domains.recordStatus[status]}
            <FoundInDns record={{ type, value, status, found }} />
          </td>
        </tr>
      ))}
    </Table>
  )
}

type FoundRecord = Pick<Domain['records'][number], 'type' | 'value' | 'status' | 'found'>

/** What DNS has instead of a record, or MX records of other hosts beside it. */
function FoundInDns({ record: { type, value, status, found } }: { record: FoundRecord }) {
  const isValid = status === 'valid'
  const others = isValid ? found.filter((each) => type === 'MX' && !each.endsWith(` ${value}`)) : found
  if (others.length === 0) return null
  return (
    <>
      <br />
      <small>{text.domains[isValid ? 'otherMx' : 'found'](others.join(', '))}</small>
    </>
  )
}

/** Changes a domain, or without one adds it. */
function DomainDialog({ domain, onClose }: { domain: Domain | null; onClose: () => void }) {
  const { api, environment } = useSession()
  const before = domain?.catch_all ?? { action: 'create' }
  const [action, setAction] = useState<Domain['catch_all']['action']>(before.action)
  const submit = (values: FormValues) => {
    const subdomains = values.isChecked('subdomains')
    const catchAll =
      action === 'deliver'
        ? { action, inbox_id: values.text('inbox') }
        : // The duration and labels of new inboxes stay.
          action === before.action
          ? before
          : { action }
    if (domain !== null) return api.domains.change(domain.id, { subdomains, catchAll })
    const name = values.text('name')
    return api.domains.create({
      ...(name === '' ? { hosted: true } : { name, subdomains }),
      environment,
      catchAll,
    })
  }
  return (
    <FormDialog
      title={domain === null ? text.domains.create : text.domains.changeTitle(domain.name)}
      action={domain === null ? text.create : text.save}
      submit={submit}
      onClose={onClose}
      onDone={onClose}
    >
      {domain === null && (
        <Field
          label={text.domains.name}
          hint={text.domains.nameHint}
          name="name"
          placeholder="staging.example.com"
          maxLength={253}
        />
      )}
      <label class="check">
        <input type="checkbox" name="subdomains" defaultChecked={domain?.subdomains ?? false} />{' '}
        {text.domains.subdomains}
      </label>
      <fieldset>
        <legend>{text.domains.unknownAddresses}</legend>
        {ACTIONS.map((each) => (
          <label key={each} class="check">
            <input type="radio" name="catch-all" checked={each === action} onChange={() => setAction(each)} />{' '}
            {text.domains.catchAll[each]}
          </label>
        ))}
      </fieldset>
      {action === 'deliver' && (
        <Field
          label={text.domains.inbox}
          name="inbox"
          placeholder="inb_…"
          required
          defaultValue={before.action === 'deliver' ? before.inbox_id : ''}
        />
      )}
    </FormDialog>
  )
}
