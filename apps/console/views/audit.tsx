import { useEffect, useState } from 'preact/hooks'
import { ApiError, type Schemas } from '#clients/typescript/src/mayfly.js'
import { useParameters, useSession, ViewLink } from '../navigation.js'
import { Choice, Command, CopyButton, Empty, Field, FormDialog, ShowMore, Table } from '../parts/controls.js'
import { formatCount, saveFile, Time } from '../parts/format.js'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'
import { shellQuoted } from './snippets.js'

type AuditEvent = Schemas['AuditEvent']

const REFRESH_MS = 10_000
const MORE = 100
/** What types begin with, by which the list is filtered. */
const KINDS = ['account', 'member', 'domain', 'webhook', 'inbox', 'inbox.message-received', 'inbox.erased']
/** Bytes of a cosignature: the id of the key, the time, and the signature (C2SP tlog-cosignature). */
const COSIGNATURE_BYTES = 4 + 8 + 64

/** The audit log of the account: its last checkpoint, its events with proofs, and certificates of erasure. */
export function AuditView() {
  const { api } = useSession()
  const logs = useLoaded((signal) => api.audit.logs({ signal }), [])
  return (
    <section>
      <h1>{text.audit.title}</h1>
      <p>
        {text.audit.about} <ViewLink to="/activity">{text.audit.toActivity}</ViewLink>
      </p>
      <Show loaded={logs}>
        {([log]) =>
          log !== undefined && (
            <>
              <CheckpointOf log={log} />
              <Events log={log} />
            </>
          )
        }
      </Show>
    </section>
  )
}

function CheckpointOf({ log }: { log: Schemas['AuditLog'] }) {
  const { api } = useSession()
  const checkpoint = useLoaded(
    (signal) => unlessEarly(api.audit.checkpoint(log.id, { signal })),
    [log.id],
    REFRESH_MS,
  )
  const exportCommand = `MAYFLY_URL=${shellQuoted(location.origin)} npx mayfly audit export --to audit`
  const verify = `npx mayfly audit verify audit --public-key ${shellQuoted(log.public_key)}`
  return (
    <Show loaded={checkpoint}>
      {(note) => (
        <>
          <dl>
            {note === null ? (
              <>
                <dt>{text.audit.checkpoint}</dt>
                <dd>{text.audit.noCheckpoint}</dd>
              </>
            ) : (
              <CheckpointFacts note={note} />
            )}
            <dt>{text.audit.publicKey}</dt>
            <dd>
              <code>{log.public_key}</code>
            </dd>
          </dl>
          <Command intro={text.audit.exportAbout} command={`${exportCommand}\n${verify}`} />
        </>
      )}
    </Show>
  )
}

function CheckpointFacts({ note }: { note: string }) {
  const [origin = '', size = '', root = ''] = note.split('\n')
  const { signedAt, witnesses } = cosignaturesOf(note, origin)
  return (
    <>
      <dt>{text.audit.checkpoint}</dt>
      <dd>
        {text.audit.leaves(formatCount(Number(size)))}
        {signedAt !== null && (
          <>
            {', '}
            {text.audit.signed} <Time value={signedAt} />
          </>
        )}
        {witnesses.length > 0 && ` · ${text.audit.cosignedBy(witnesses.join(', '))}`}
        <CopyButton value={note} label={text.copyWhat(text.audit.checkpoint)} />
      </dd>
      <dt>{text.audit.root}</dt>
      <dd>
        <code>{root}</code>
      </dd>
    </>
  )
}

/** When the log itself has cosigned a checkpoint, and the witnesses that have too. */
function cosignaturesOf(note: string, origin: string): { signedAt: string | null; witnesses: string[] } {
  const lines = note.split('\n').filter((line) => line.startsWith('— '))
  const signatures = lines.map((line) => {
    const [, name = '', value = ''] = line.split(' ')
    return { name, bytes: Uint8Array.from(atob(value), (letter) => letter.charCodeAt(0)) }
  })
  const own = signatures.find(({ name, bytes }) => name === origin && bytes.length === COSIGNATURE_BYTES)
  const seconds = own === undefined ? null : Number(new DataView(own.bytes.buffer).getBigUint64(4))
  return {
    signedAt: seconds === null ? null : new Date(seconds * 1_000).toISOString(),
    witnesses: signatures.map(({ name }) => name).filter((name) => name !== origin),
  }
}

function Events({ log }: { log: Schemas['AuditLog'] }) {
  const { api, environment } = useSession()
  const [{ type = '', subject = '' }, change] = useParameters()
  const [limit, setLimit] = useState(MORE)
  useEffect(() => setLimit(MORE), [type, subject])
  const [proved, setProved] = useState<AuditEvent | null>(null)
  const [erased, setErased] = useState<string | null>(null)
  const filters = { ...(type && { type }), ...(subject && { subject }) }
  const events = useLoaded(
    (signal) => api.audit.events(log.id, { ...filters, order: 'desc', limit, signal }),
    [type, subject, limit],
    // A search of a large log takes longer.
    type === '' && subject === '' ? REFRESH_MS : undefined,
  )
  return (
    <>
      <h2>{text.audit.events}</h2>
      <div class="filters">
        <Choice
          label={text.audit.type}
          value={type}
          options={[['', text.all], ...KINDS.map((kind) => [kind, kind] as const)]}
          onChange={(value) => change({ type: value })}
        />
        <Field
          label={text.audit.subject}
          type="search"
          value={subject}
          placeholder="inb_…"
          onChange={({ currentTarget }) => change({ subject: currentTarget.value.trim() })}
        />
      </div>
      <Show loaded={events}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={text.audit.none} />
          ) : (
            <>
              <Table columns={['#', text.time, text.activity.who, text.audit.event, '']}>
                {list.map((event) => (
                  <tr key={event.index}>
                    <td>{event.index}</td>
                    <td>
                      <Time value={event.time} />
                    </td>
                    <td>{event.actor === null ? text.activity.system : <code>{event.actor}</code>}</td>
                    <td>
                      <strong>{shortType(event)}</strong>
                      <div class="muted">
                        <ViewLink to="/audit" parameters={{ subject: event.subject }}>
                          <code>{event.subject}</code>
                        </ViewLink>{' '}
                        {event.environment !== '' && `· ${event.environment}`}
                      </div>
                    </td>
                    <td class="buttons">
                      <button
                        type="button"
                        aria-label={text.audit.proofOf(event.index)}
                        onClick={() => setProved(event)}
                      >
                        {text.audit.proof}
                      </button>
                      {shortType(event) === 'inbox.erased' && event.environment === environment && (
                        <button
                          type="button"
                          aria-label={text.audit.certificateOf(event.subject)}
                          onClick={() => setErased(event.subject)}
                        >
                          {text.audit.certificate}
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
              <ShowMore count={list.length} limit={limit} onMore={() => setLimit(limit + MORE)} />
            </>
          )
        }
      </Show>
      {proved !== null && (
        <DocumentDialog
          title={text.audit.proofOf(proved.index)}
          about={text.audit.proofAbout}
          name={`${proved.id}.tlog-proof`}
          load={(signal) => api.audit.proof(log.id, proved.id, { signal })}
          onClose={() => setProved(null)}
        />
      )}
      {erased !== null && (
        <DocumentDialog
          title={text.audit.certificateOf(erased)}
          about={text.audit.certificateAbout}
          name={`${erased}.erasure.json`}
          load={async (signal) => JSON.stringify(await api.audit.erasure(erased, { signal }), null, 2)}
          onClose={() => setErased(null)}
        />
      )}
    </>
  )
}

/** A text of the server that the user can copy and save. */
function DocumentDialog({
  title,
  about,
  name,
  load,
  onClose,
}: {
  title: string
  about: string
  /** Of the file. */
  name: string
  load: (signal: AbortSignal) => Promise<string>
  onClose: () => void
}) {
  const loaded = useLoaded(load, [name])
  return (
    <FormDialog title={title} onClose={onClose}>
      <p>{about}</p>
      <Show loaded={loaded}>
        {(content) => (
          <>
            <pre class="wrap">{content}</pre>
            <div class="actions">
              <CopyButton value={content} label={text.copyWhat(name)} />
              <button type="button" onClick={() => saveFile(name, [content], 'text/plain')}>
                {text.audit.save}
              </button>
            </div>
          </>
        )}
      </Show>
    </FormDialog>
  )
}

/** Null while the log has no checkpoint. */
async function unlessEarly<Value>(loading: Promise<Value>): Promise<Value | null> {
  try {
    return await loading
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not-yet-checkpointed') return null
    throw error
  }
}

function shortType({ type }: AuditEvent): string {
  return type.replace(/^mayfly\./, '')
}
