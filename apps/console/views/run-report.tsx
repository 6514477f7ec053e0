import { useMemo } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useSession } from '../navigation.js'
import { Chart } from '../parts/chart.js'
import { Field } from '../parts/controls.js'
import { formatBytes, formatCount, formatLatency, parseLabels, Time } from '../parts/format.js'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'

/** The report of a load or test run: everything with its label. It is loaded again when `reloads` changes. */
export function RunReport({
  label,
  reloads,
  onChange,
}: {
  label: string
  reloads: number
  onChange: (label: string) => void
}) {
  return (
    <>
      <h2>{text.report.title}</h2>
      <p>{text.report.about}</p>
      <Field
        label={text.report.label}
        placeholder="run:42"
        value={label}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
      {label !== '' && <Report key={label} label={label} reloads={reloads} />}
    </>
  )
}

function Report({ label, reloads }: { label: string; reloads: number }) {
  const { api } = useSession()
  const report = useLoaded(
    (signal) => api.usage.report({ labels: parseLabels(label), signal }),
    [label, reloads],
  )
  return <Show loaded={report}>{(value) => <ReportFigures report={value} />}</Show>
}

function ReportFigures({ report }: { report: Schemas['UsageReport'] }) {
  const { timeline } = report
  const [times, series] = useMemo(
    () => [
      timeline.map(({ from }) => Date.parse(from) / 1_000),
      [{ label: text.usage.mails, color: '--series-1', values: timeline.map(({ mails }) => mails) }],
    ],
    [timeline],
  )
  const quantiles = (values: Schemas['Quantiles'] | null) =>
    values === null
      ? '–'
      : text.report.quantiles(formatLatency(values.p50), formatLatency(values.p95), formatLatency(values.p99))
  const figures = [
    [text.inboxes.title, formatCount(report.inboxes)],
    [text.report.withoutMail, formatCount(report.inboxes_without_mail)],
    [text.usage.mails, `${formatCount(report.mails)}, ${formatBytes(report.bytes)}`],
    [text.report.duplicates, formatCount(report.duplicates)],
    [text.report.read, formatCount(report.read)],
    [text.usage.requests, formatCount(report.requests)],
    [text.usage.refusals, formatCount(report.refusals)],
    [text.report.rate, report.mails_per_second === null ? '–' : report.mails_per_second.toFixed(1)],
    [text.report.accept, quantiles(report.accept_ms)],
    [text.report.visible, quantiles(report.visible_ms)],
    [text.report.firstRead, quantiles(report.first_read_ms)],
  ] as const
  return (
    <>
      {timeline.length > 0 && <Chart title={text.report.timeline} times={times} series={series} />}
      <dl class="figures">
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p>
        {text.report.countedUpTo} <Time value={report.counted_up_to} />
      </p>
    </>
  )
}
