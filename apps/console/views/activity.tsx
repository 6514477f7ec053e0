import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useSession } from '../navigation.js'
import { Choice, Empty, ShowMore, Table } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'

type Activity = Schemas['Activity']

/** The first parts of actions, by which the list is filtered. */
const KINDS = ['account', 'member', 'domain', 'webhook', 'inbox', 'token', 'faults']
const MORE = 100

/** Who changed what in the account, newest first. */
export function ActivityView() {
  const { api } = useSession()
  const [type, setType] = useState('')
  const [limit, setLimit] = useState(MORE)
  const filter = type === '' ? {} : { type }
  const activity = useLoaded((signal) => api.activity({ ...filter, limit, signal }), [type, limit])
  return (
    <section>
      <div class="heading">
        <h1>{text.activity.title}</h1>
        <Choice
          label={text.activity.type}
          value={type}
          options={[['', text.all], ...KINDS.map((kind) => [kind, kind] as const)]}
          onChange={setType}
        />
      </div>
      <Show loaded={activity}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={text.activity.none} />
          ) : (
            <>
              <ActivityTable entries={list} />
              <ShowMore count={list.length} limit={limit} onMore={() => setLimit(limit + MORE)} />
            </>
          )
        }
      </Show>
    </section>
  )
}

function ActivityTable({ entries }: { entries: readonly Activity[] }) {
  return (
    <Table columns={[text.time, text.activity.who, text.activity.action, text.activity.changes]}>
      {entries.map(({ id, time, actor, action, subject, environment, outcome, changes, ...request }) => (
        <tr key={id}>
          <td>
            <Time value={time} />
          </td>
          <td title={request.request_id ?? undefined}>
            {actor.name ??
              actor.id ??
              (actor.type === 'operator' ? text.activity.operator : text.activity.system)}
            {request.remote_address !== null && <div class="muted">{request.remote_address}</div>}
          </td>
          <td>
            <strong>{action}</strong>{' '}
            {outcome === 'ignored' && <span class="tag">{text.activity.ignored}</span>}
            <div class="muted">
              <code>{subject}</code> {environment !== null && `· ${environment}`}
            </div>
          </td>
          <td>
            {changes.map((change) => (
              <div key={change.field}>{describe(change)}</div>
            ))}
          </td>
        </tr>
      ))}
    </Table>
  )
}

function describe({ field, from, to }: Activity['changes'][number]): string {
  if (from === null) return to === null ? field : `${field}: ${shown(to)}`
  return `${field}: ${shown(from)} → ${shown(to)}`
}

function shown(value: unknown): string {
  if (value === null) return text.none
  if (Array.isArray(value)) return value.map(shown).join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
