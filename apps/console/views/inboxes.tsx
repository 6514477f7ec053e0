import { Pencil } from 'lucide'
import { useEffect, useState } from 'preact/hooks'
import { useEnvironment, useParameters, useSession, ViewLink } from '../navigation.js'
import { Choice, CopyButton, Empty, Field, FormDialog } from '../parts/controls.js'
import { FaultsNotice } from '../parts/faults-notice.js'
import { formatCount, Labels, parseLabels, TimeLeft } from '../parts/format.js'
import { IconButton } from '../parts/icon.js'
import { Failure } from '../parts/loading.js'
import { VirtualList } from '../parts/virtual-list.js'
import type { Session } from '../session.js'
import { text } from '../text.js'
import { InboxDialog } from './inbox-dialog.js'
import { isActive, useInboxList, type InboxFilters, type ListedInbox } from './inbox-list.js'

const STATES = [
  ['active', text.inboxes.active],
  ['deleted', text.inboxes.deleted],
  ['expired', text.inboxes.expired],
] as const

/** Inboxes in one request to delete them. */
const DELETED_AT_ONCE = 500
/** At most so many inboxes are searched by name or address. */
const MAX_SEARCHED = 20_000

type Dialog = { kind: 'edit'; inbox: ListedInbox } | { kind: 'delete'; ids: string[] }

/** The inboxes of the environment. */
export function InboxesView() {
  const session = useSession()
  const [{ state: stateText, label = '', search = '' }, change] = useParameters()
  const state = STATES.find(([name]) => name === stateText)?.[0] ?? 'active'
  const { feed, inboxes: active } = useEnvironment()
  const list = useInboxList(session, feed, filtersOf(state, label))
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [dialog, setDialog] = useState<Dialog | null>(null)

  const isLoading = list.inboxes.length === 0 && list.hasMore && list.error === null
  const isSearching = search !== ''
  const shown = isSearching ? list.inboxes.filter((inbox) => matches(inbox, search)) : list.inboxes
  useEffect(() => {
    if (isSearching && list.hasMore && list.inboxes.length < MAX_SEARCHED) list.loadMore()
  }, [isSearching, list.inboxes.length])

  const toggle = (id: string) => {
    const next = new Set(selected)
    if (!next.delete(id)) next.add(id)
    setSelected(next)
  }
  return (
    <section class="list-view page">
      <div class="heading">
        <h1>{text.inboxes.title}</h1>
        {selected.size > 0 && (
          <button
            type="button"
            class="dangerous"
            onClick={() => setDialog({ kind: 'delete', ids: [...selected] })}
          >
            {text.inboxes.deleteSelected(selected.size)}
          </button>
        )}
      </div>
      <div class="filters">
        <Choice
          label={text.state}
          value={state}
          options={STATES}
          onChange={(chosen) => change({ state: chosen })}
        />
        <Field
          label={text.label}
          placeholder="run:42"
          value={label}
          onChange={({ currentTarget }) => change({ label: currentTarget.value })}
        />
        <Field
          label={text.inboxes.search}
          type="search"
          value={search}
          onInput={({ currentTarget }) => change({ search: currentTarget.value })}
        />
        <p class="count" role="status">
          {list.error !== null
            ? null
            : isLoading
              ? text.loading
              : isSearching && list.hasMore
                ? text.inboxes.searching(list.inboxes.length)
                : text.inboxes.count(formatCount(shown.length), list.hasMore)}
          {!feed.isLive && <span class="not-live">{text.mail.reconnecting}</span>}
        </p>
      </div>
      {session.allows('admin') && <FaultsNotice of={session.environment} title={text.faults.ofEnvironment} />}
      {list.error !== null && <Failure error={list.error} retry={list.reload} />}
      {shown.length === 0 && !list.hasMore ? (
        <Empty title={isSearching || label !== '' ? text.inboxes.noMatch : text.inboxes.none}>
          {session.allows('inboxes') && !isSearching && label === '' && state === 'active' && (
            <p>{text.inboxes.noneHint}</p>
          )}
        </Empty>
      ) : (
        <VirtualList
          label={text.inboxes.title}
          items={shown}
          rowHeight={64}
          keyOf={({ id }) => id}
          onNearEnd={list.loadMore}
          row={(inbox) => (
            <InboxRow
              inbox={inbox}
              isSelected={selected.has(inbox.id)}
              onToggle={() => toggle(inbox.id)}
              onEdit={() => setDialog({ kind: 'edit', inbox })}
            />
          )}
        />
      )}
      {dialog?.kind === 'edit' && isActive(dialog.inbox) && (
        <InboxDialog
          inbox={dialog.inbox}
          onClose={() => setDialog(null)}
          onSaved={(inbox) => {
            list.put(inbox)
            active.put(inbox)
          }}
        />
      )}
      {dialog?.kind === 'delete' && (
        <DeleteDialog
          session={session}
          ids={dialog.ids}
          onClose={() => setDialog(null)}
          onDeleted={(ids) => {
            list.remove(ids)
            active.remove(ids)
            setSelected((all) => new Set([...all].filter((id) => !ids.includes(id))))
          }}
        />
      )}
    </section>
  )
}

function filtersOf(state: NonNullable<InboxFilters['state']>, label: string): InboxFilters {
  try {
    return { state, labels: parseLabels(label) }
  } catch {
    // The label is not complete yet.
    return { state }
  }
}

function matches(inbox: ListedInbox, search: string): boolean {
  const wanted = search.toLowerCase()
  const name = isActive(inbox) ? (inbox.name ?? '') : ''
  return inbox.address.includes(wanted) || name.toLowerCase().includes(wanted) || inbox.id === wanted
}

function InboxRow({
  inbox,
  isSelected,
  onToggle,
  onEdit,
}: {
  inbox: ListedInbox
  isSelected: boolean
  onToggle: () => void
  onEdit: () => void
}) {
  const mayChange = useSession().allows('inboxes')
  const active = isActive(inbox) ? inbox : null
  const name = active?.name ?? inbox.address
  return (
    <div class="row">
      {active !== null && mayChange && (
        <input
          type="checkbox"
          checked={isSelected}
          onChange={onToggle}
          aria-label={text.inboxes.select(name)}
        />
      )}
      <div class="main">
        <ViewLink to={`/inboxes/${inbox.id}`}>{name}</ViewLink> <Labels labels={inbox.labels} />
        <br />
        {active?.name != null && <small class="address">{inbox.address}</small>}
        {active?.password_protected === true && <small> · {text.inboxes.protected}</small>}
      </div>
      <span class="facts">
        <span>{text.inboxes.messages(inbox.message_count)}</span>
        {isActive(inbox) ? <TimeLeft expiresAt={inbox.expires_at} /> : <span>{inbox.state}</span>}
      </span>
      {active !== null && (
        <span class="buttons">
          <CopyButton value={inbox.address} label={text.copyWhat(inbox.address)} />
          {mayChange && <IconButton of={Pencil} label={text.inboxes.editWhat(name)} onClick={onEdit} />}
        </span>
      )}
    </div>
  )
}

/** Deletes inboxes, many at a time, and shows how far it is. */
function DeleteDialog({
  session: { api },
  ids,
  onClose,
  onDeleted,
}: {
  session: Session
  ids: readonly string[]
  onClose: () => void
  onDeleted: (ids: readonly string[]) => void
}) {
  const [done, setDone] = useState(0)
  const submit = async () => {
    for (let from = 0; from < ids.length; from += DELETED_AT_ONCE) {
      const some = ids.slice(from, from + DELETED_AT_ONCE)
      await api.inboxes.deleteMany({ ids: some })
      onDeleted(some)
      setDone(from + some.length)
    }
  }
  return (
    <FormDialog
      title={text.inboxes.deleteTitle(ids.length)}
      action={text.inboxes.deleteAction(ids.length)}
      isDangerous
      submit={submit}
      onClose={onClose}
      onDone={onClose}
    >
      <p>{text.inboxes.deleteWarning}</p>
      {done > 0 && <progress max={ids.length} value={done} aria-label={text.working} />}
    </FormDialog>
  )
}
