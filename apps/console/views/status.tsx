import { useSession } from '../navigation.js'
import { formatBytes, formatCount } from '../parts/format.js'
import { Failure, Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'

const REFRESH_MS = 5_000

/** The metrics that are shown; the others are for Prometheus. */
const METRICS = [
  ['mayfly_backlog_records', text.status.backlog, formatCount],
  ['mayfly_active_inboxes', text.status.activeInboxes, formatCount],
  ['mayfly_free_disk_bytes', text.status.disk, formatBytes],
  ['mayfly_anonymous_memory_bytes', text.status.memory, formatBytes],
  ['mayfly_smtp_connections', text.status.smtpConnections, formatCount],
  ['mayfly_open_streams', text.status.streams, formatCount],
  ['mayfly_open_waits', text.status.waits, formatCount],
] as const

/** The status of this server. */
export function StatusView() {
  const { api } = useSession()
  const version = useLoaded((signal) => api.version({ signal }), [])
  const readiness = useLoaded(readReadiness, [], REFRESH_MS)
  const metrics = useLoaded(readMetrics, [], REFRESH_MS)
  return (
    <section>
      <h1>{text.status.title}</h1>
      {readiness.error !== null && <Failure error={readiness.error} />}
      <dl class="figures">
        <div>
          <dt>{text.state}</dt>
          <dd>
            {readiness.value === undefined
              ? text.loading
              : readiness.value.isReady
                ? text.status.ready
                : readiness.value.detail}
          </dd>
        </div>
        <Show loaded={version}>
          {({ version: number, commit, engine }) => (
            <>
              <div>
                <dt>{text.status.version}</dt>
                <dd>
                  {number} {commit?.slice(0, 8)}
                </dd>
              </div>
              <div>
                <dt>{text.status.engine}</dt>
                <dd>{engine}</dd>
              </div>
            </>
          )}
        </Show>
        {metrics.value !== undefined && <Metrics values={metrics.value} />}
      </dl>
      {metrics.value?.size === 0 && <p>{text.status.noMetrics}</p>}
    </section>
  )
}

function Metrics({ values }: { values: ReadonlyMap<string, number> }) {
  const lags = [...values].filter(([name]) => name.startsWith('mayfly_consumer_lag_records{'))
  const lag = lags.reduce((total, [, value]) => total + value, 0)
  return (
    <>
      {METRICS.map(([name, title, format]) => {
        const value = values.get(name)
        return (
          value !== undefined && (
            <div key={name}>
              <dt>{title}</dt>
              <dd>{Number.isNaN(value) ? text.status.unknown : format(value)}</dd>
            </div>
          )
        )
      })}
      {lags.length > 0 && (
        <div>
          <dt>{text.status.lag}</dt>
          <dd>{formatCount(lag)}</dd>
        </div>
      )}
    </>
  )
}

/** A 503 is an answer, not an error. */
async function readReadiness(signal: AbortSignal): Promise<{ isReady: boolean; detail: string }> {
  const response = await fetch('/readyz', { signal })
  const { detail = '' } = (await response.json()) as { detail?: string }
  return { isReady: response.ok, detail }
}

/** Values by name and labels, as in the text format of Prometheus; none if they are served on another port. */
async function readMetrics(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const response = await fetch('/metrics', { signal })
  if (!response.ok) return new Map()
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ')
      return [line.slice(0, space), Number(line.slice(space + 1))]
    }),
  )
}
