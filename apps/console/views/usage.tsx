import { useMemo, useState } from 'preact/hooks'
import type { QueryOptions, Schemas } from '#clients/typescript/src/mayfly.js'
import { useParameters, useSession } from '../navigation.js'
import { Chart, type Series } from '../parts/chart.js'
import { Choice, Empty, Field } from '../parts/controls.js'
import { formatBytes, formatCount, formatLatency, parseLabels, saveFile } from '../parts/format.js'
import { Failure, Show, useAction, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'
import { RunReport } from './run-report.js'

type UsageRow = Schemas['UsageRow']
type Interval = NonNullable<QueryOptions<'readUsage'>['interval']>

const INTERVAL_MS = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const

/** Spans that end now, and the interval that makes a readable chart of each. */
const SPANS = [
  ['5m', text.usage.spans['5m'], 300_000, 'second'],
  ['1h', text.usage.spans['1h'], 3_600_000, 'minute'],
  ['24h', text.usage.spans['24h'], 86_400_000, 'hour'],
  ['7d', text.usage.spans['7d'], 604_800_000, 'hour'],
  ['30d', text.usage.spans['30d'], 2_592_000_000, 'day'],
] as const satisfies readonly (readonly [string, string, number, Interval])[]

const GROUPS = [
  ['none', text.usage.noGroup],
  ['key', text.usage.byKey],
  ['environment', text.environment],
  ['label', text.label],
] as const

const FORMATS = ['csv', 'ndjson', 'parquet'] as const

/** What the account did over time, the report of a run, and the export. */
export function UsageView() {
  const session = useSession()
  const { api } = session
  const [{ span: spanText = '1h', group: groupText = 'none', name = 'run', label = '' }, change] =
    useParameters()
  const span = SPANS.find(([each]) => each === spanText) ?? SPANS[1]
  const group = GROUPS.find(([each]) => each === groupText)?.[0] ?? 'none'
  const [reloads, setReloads] = useState(0)
  const rows = useLoaded(
    (signal) =>
      api.usage.read({
        from: new Date(Date.now() - span[2]).toISOString(),
        interval: span[3],
        groupBy: group === 'label' ? `label.${name}` : group,
        labels: parseLabels(label),
        signal,
      }),
    [span, group, name, label, reloads],
  )
  return (
    <section>
      <div class="heading">
        <h1>{text.usage.title}</h1>
        <button type="button" onClick={() => setReloads((value) => value + 1)}>
          {text.reload}
        </button>
      </div>
      <p>{text.usage.about}</p>
      <div class="filters">
        <Choice
          label={text.time}
          value={span[0]}
          options={SPANS.map(([each, title]) => [each, title] as const)}
          onChange={(chosen) => change({ span: chosen })}
        />
        <Choice
          label={text.usage.group}
          value={group}
          options={GROUPS}
          onChange={(chosen) => change({ group: chosen })}
        />
        {group === 'label' && (
          <Field
            label={text.usage.labelName}
            value={name}
            onChange={({ currentTarget }) => change({ name: currentTarget.value })}
          />
        )}
        <Field
          label={text.usage.onlyLabel}
          placeholder="run:42"
          value={label}
          onChange={({ currentTarget }) => change({ label: currentTarget.value })}
        />
      </div>
      <Show loaded={rows}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={text.usage.none}>
              <p>{text.usage.noneHint}</p>
            </Empty>
          ) : (
            <Figures rows={list} span={span} />
          )
        }
      </Show>
      {session.allows('admin') && <Export spanMs={span[2]} />}
      <RunReport label={label} reloads={reloads} onChange={(chosen) => change({ label: chosen })} />
    </section>
  )
}

const COLORS = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5'] as const

function Figures({ rows, span }: { rows: readonly UsageRow[]; span: (typeof SPANS)[number] }) {
  const charts = useMemo(() => chartsOf(rows, span), [rows, span])
  return (
    <>
      {charts.map(({ title, times, series }) => (
        <Chart key={title} title={title} times={times} series={series} />
      ))}
      <Totals rows={rows} />
    </>
  )
}

/**
 * Charts of mails and requests by group; without groups, also of refusals and latencies. Intervals in which nothing
 * happened have no row, and are zero.
 */
function chartsOf(
  rows: readonly UsageRow[],
  [, , spanMs, interval]: (typeof SPANS)[number],
): { title: string; times: number[]; series: Series[] }[] {
  const groups = [...new Set(rows.map(({ group }) => group))]
  const stepMs = INTERVAL_MS[interval]
  // The first interval begins before the span, unless it begins with it.
  const startOf = (ms: number) => Math.floor(ms / stepMs) * stepMs
  const now = Date.now()
  const starts: number[] = []
  for (let start = startOf(now - spanMs); start <= now; start += stepMs) starts.push(start)
  const times = starts.map((start) => start / 1_000)
  const byStart = new Map(rows.map((row) => [`${startOf(Date.parse(row.from))} ${row.group}`, row]))
  const line = (
    label: string,
    group: string | null,
    index: number,
    valueOf: (row: UsageRow) => number | null | undefined,
    missing: number | null = 0,
  ): Series => ({
    label,
    color: COLORS[index % COLORS.length] ?? COLORS[0],
    values: starts.map((start) => {
      const row = byStart.get(`${start} ${group}`)
      return row === undefined ? missing : (valueOf(row) ?? null)
    }),
  })
  const isGrouped = groups.length > 1 || groups[0] !== null
  if (isGrouped) {
    const shown = groups.slice(0, COLORS.length)
    const by = (valueOf: (row: UsageRow) => number) =>
      shown.map((group, index) => line(nameOf(rows, group) ?? text.none, group, index, valueOf))
    return [
      { title: text.usage.mails, times, series: by(({ mails }) => mails) },
      { title: text.usage.requests, times, series: by(({ requests }) => requests) },
    ]
  }
  return [
    {
      title: text.usage.counts,
      times,
      series: [
        line(text.usage.requests, null, 0, ({ requests }) => requests),
        line(text.usage.mails, null, 1, ({ mails }) => mails),
        line(text.usage.refusals, null, 2, ({ refusals }) => refusals),
      ],
    },
    {
      title: text.usage.latencies,
      times,
      series: [
        line(text.usage.requestP50, null, 0, ({ request_ms }) => request_ms?.p50, null),
        line(text.usage.requestP99, null, 1, ({ request_ms }) => request_ms?.p99, null),
        line(text.usage.visibleP50, null, 3, ({ visible_ms }) => visible_ms?.p50, null),
        line(text.usage.visibleP99, null, 4, ({ visible_ms }) => visible_ms?.p99, null),
      ],
    },
  ]
}

/** The name of a group: of a key, its own, with the id if other keys have the same name. */
function nameOf(rows: readonly UsageRow[], group: string | null): string | null {
  const name = rows.find((row) => row.group === group)?.group_name ?? null
  if (name === null) return group
  const isUnique = rows.every((row) => row.group_name !== name || row.group === group)
  return isUnique ? name : `${name} (${group})`
}

/** The sums over the span, by group. Percentiles can't be added, so the worst of an interval is shown. */
function Totals({ rows }: { rows: readonly UsageRow[] }) {
  const groups = Map.groupBy(rows, ({ group }) => group)
  const sum = (list: readonly UsageRow[], name: 'requests' | 'refusals' | 'inboxes' | 'mails' | 'bytes') =>
    list.reduce((total, row) => total + row[name], 0)
  const worst = (list: readonly UsageRow[], name: 'request_ms' | 'visible_ms') => {
    const values = list.flatMap((row) => row[name]?.p99 ?? [])
    return values.length === 0 ? '–' : formatLatency(Math.max(...values))
  }
  return (
    <div class="scroll" tabIndex={0}>
      <table class="numbers">
        <caption>{text.usage.totals}</caption>
        <thead>
          <tr>
            <th scope="col">{text.usage.groupName}</th>
            <th scope="col">{text.usage.requests}</th>
            <th scope="col">{text.usage.refusals}</th>
            <th scope="col">{text.inboxes.title}</th>
            <th scope="col">{text.usage.mails}</th>
            <th scope="col">{text.usage.bytes}</th>
            <th scope="col">{text.usage.requestP99}</th>
            <th scope="col">{text.usage.visibleP99}</th>
          </tr>
        </thead>
        <tbody>
          {[...groups].map(([group, list]) => (
            <tr key={group}>
              <th scope="row">{nameOf(rows, group) ?? (groups.size === 1 ? text.all : text.none)}</th>
              <td>{formatCount(sum(list, 'requests'))}</td>
              <td>{formatCount(sum(list, 'refusals'))}</td>
              <td>{formatCount(sum(list, 'inboxes'))}</td>
              <td>{formatCount(sum(list, 'mails'))}</td>
              <td>{formatBytes(sum(list, 'bytes'))}</td>
              <td>{worst(list, 'request_ms')}</td>
              <td>{worst(list, 'visible_ms')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Saves the usage of the span as a file. */
function Export({ spanMs }: { spanMs: number }) {
  const { api } = useSession()
  const { isRunning, error, run } = useAction()
  const [format, setFormat] = useState<(typeof FORMATS)[number]>('csv')
  const save = async () => {
    const from = new Date(Date.now() - spanMs).toISOString()
    const stream = await api.usage.export({ format, from })
    const blob = await new Response(stream).blob()
    saveFile(`mayfly-usage.${format}`, [blob], 'application/octet-stream')
  }
  return (
    <div class="filters">
      <Choice
        label={text.usage.format}
        value={format}
        options={FORMATS.map((each) => [each, each] as const)}
        onChange={setFormat}
      />
      <button type="button" disabled={isRunning} onClick={() => void run(save)}>
        {isRunning ? text.working : text.usage.export}
      </button>
      {error !== null && <Failure error={error} />}
    </div>
  )
}
