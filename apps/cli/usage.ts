import { open, rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { type Command, Option } from 'commander'
import {
  EXPORT_FORMATS,
  EXPORT_TABLES,
  type Quantiles,
  type QuantilesAndMax,
  USAGE_INTERVALS,
  type UsageTotals,
} from '#libs/ports/usage/usage-store.js'
import type { Session } from './api-client.js'
import { label, time } from './arguments.js'
import { EXIT, Failure, cannotWrite } from './failure.js'
import { facts, table } from './printing.js'

interface RowJson extends UsageTotals {
  from: string
  to: string
  group: string | null
  group_name: string | null
  request_ms: Quantiles | null
  visible_ms: Quantiles | null
}

interface BucketJson {
  from: string
  to: string
  mails: number
}

interface ReportJson extends UsageTotals {
  counted_up_to: string | null
  duplicates: number
  read: number
  inboxes_without_mail: number
  accept_ms: QuantilesAndMax | null
  visible_ms: Quantiles | null
  first_read_ms: Quantiles | null
  first_mail_at: string | null
  last_mail_at: string | null
  mails_per_second: number | null
  timeline: BucketJson[]
}

interface SpanOptions {
  from?: string
  to?: string
}

interface ShowOptions extends SpanOptions {
  interval: string
  groupBy?: string
  label?: readonly string[]
}

/** `mayfly usage …` */
export function usageCommands(program: Command, session: Session): void {
  const usage = program.command('usage').description('usage figures')
  showCommand(usage, session)
  reportCommand(usage, session)
  exportCommand(usage, session)
}

function showCommand(usage: Command, session: Session): void {
  withSpan(usage.command('show', { isDefault: true }), 'the last 24 hours')
    .description('usage of the key over time, or of its account with the scope admin (default command)')
    .addOption(
      new Option('--interval <interval>', 'time span of a row, in UTC')
        .choices(USAGE_INTERVALS)
        .default('hour'),
    )
    .option('--group-by <what>', 'split rows by key, environment or label.<name>')
    .option('--label <name:value>', 'only usage with the label; can be repeated: all must match', label)
    .action(({ groupBy, ...query }: ShowOptions) => {
      const rows = session
        .api()
        .call<RowJson[]>('GET', '/v1/usage', { query: { ...query, group_by: groupBy } })
      return session.print(rows, (shown) => rowsText(shown, groupBy))
    })
}

function reportCommand(usage: Command, session: Session): void {
  withSpan(usage.command('report'), 'the last 90 days')
    .description('summary of a load run: everything that has a label')
    .requiredOption('--label <name:value>', 'can be repeated: all must match', label)
    .action((query: SpanOptions & { label: readonly string[] }) => {
      const report = session.api().call<ReportJson>('GET', '/v1/usage/report', { query: { ...query } })
      return session.print(report, reportText)
    })
}

function exportCommand(usage: Command, session: Session): void {
  withSpan(usage.command('export'), 'the last 24 hours')
    .description("export the account's usage to a file; needs the scope admin")
    .addOption(new Option('--format <format>').choices(EXPORT_FORMATS).default('ndjson'))
    .addOption(
      new Option('--table <table>', 'figures by key, route or webhook, or events of one kind')
        .choices(EXPORT_TABLES)
        .default('usage'),
    )
    .option('--output <file>', 'write to a file instead of standard output; replaces an existing file')
    .action(async (options: SpanOptions & { format: string; table: string; output?: string }) => {
      const { output, ...query } = options
      if (output === undefined && options.format === 'parquet' && session.isTerminal) {
        throw new Failure(
          EXIT.usage,
          'Parquet is binary and is not printed on a terminal: name a file with --output',
        )
      }
      const request = (signal: AbortSignal) => session.api().stream('/v1/usage/export', { query, signal })
      if (output === undefined) {
        await session.writeAll(await request(new AbortController().signal))
        return
      }
      const bytes = await writeFileAtomically(output, request)
      await session.print({ output, bytes }, () => facts({ file: output, bytes }))
    })
}

function withSpan(command: Command, defaultSpan: string): Command {
  return command
    .option(
      '--from <time>',
      `start, such as 2026-11-21T08:00:00Z or 2026-11-21; default: ${defaultSpan}`,
      time,
    )
    .option('--to <time>', 'end, exclusive; default: now', time)
}

function rowsText(rows: readonly RowJson[], groupBy: string | undefined): string {
  const isGrouped = groupBy !== undefined && groupBy !== 'none'
  const names = ['requests', 'refusals', 'inboxes', 'mails', 'bytes']
  return table(
    ['from', ...(isGrouped ? [groupBy] : []), ...names, 'request ms', 'visible ms'],
    rows.map((row) => [
      row.from,
      ...(isGrouped ? [groupText(row)] : []),
      ...[row.requests, row.refusals, row.inboxes, row.mails, row.bytes].map(String),
      quantilesText(row.request_ms),
      quantilesText(row.visible_ms),
    ]),
  )
}

/** The group of a row. Names of keys are not unique. */
function groupText({ group, group_name: name }: RowJson): string {
  return name === null ? (group ?? '-') : `${name} (${group})`
}

function reportText(report: ReportJson): string {
  const { requests, refusals, inboxes, mails, bytes, duplicates, read } = report
  const { accept_ms: acceptMs, timeline } = report
  return facts({
    'counted up to': report.counted_up_to ?? '-',
    ...{ requests, refusals, inboxes },
    'inboxes without mail': report.inboxes_without_mail,
    ...{ mails, bytes, duplicates, read },
    'accept ms': acceptMs === null ? '-' : `${quantilesText(acceptMs)}, at most ${acceptMs.max.toFixed(1)}`,
    'visible ms': quantilesText(report.visible_ms),
    'first read ms': quantilesText(report.first_read_ms),
    'first mail': report.first_mail_at,
    'last mail': report.last_mail_at,
    'mails per second': report.mails_per_second,
    timeline: timeline.length === 0 ? null : timelineText(timeline),
  })
}

const BARS = '▁▂▃▄▅▆▇█'

/** A bar for each bucket, by its number of mails; a dot for a bucket without mail. */
function timelineText(timeline: readonly BucketJson[]): string {
  const max = Math.max(...timeline.map(({ mails }) => mails))
  const bars = timeline.map(({ mails }) =>
    mails === 0 ? '·' : (BARS[Math.ceil((mails / max) * BARS.length) - 1] ?? ''),
  )
  const [first] = timeline
  const seconds = first === undefined ? 0 : (Date.parse(first.to) - Date.parse(first.from)) / 1_000
  return `${bars.join('')} (${seconds} s each, peak ${max})`
}

/** Median, 95th and 99th percentile. */
function quantilesText(quantiles: Quantiles | null): string {
  if (quantiles === null) return '-'
  return [quantiles.p50, quantiles.p95, quantiles.p99].map((ms) => ms.toFixed(1)).join('/')
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Requests the content. Called once the file is open. The signal aborts the request. */
type RequestContent = (signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>

/**
 * Resolves with the number of bytes once the file has the complete content. Until then an existing file is unchanged.
 * An incomplete file is removed, also if a signal ends the command.
 */
async function writeFileAtomically(path: string, request: RequestContent): Promise<number> {
  const partial = `${path}.${process.pid}.partial`
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort()
  const { signal } = interrupted
  for (const name of SIGNALS) process.once(name, interrupt)
  try {
    const file = (await open(partial, 'wx')).createWriteStream()
    try {
      await pipeline(await request(signal), file, { signal })
    } finally {
      file.destroy()
    }
    await rename(partial, path)
    return file.bytesWritten
  } catch (error) {
    await rm(partial, { force: true })
    if (signal.aborted) throw new Failure(EXIT.failed, 'interrupted')
    if (error instanceof Failure) throw error
    throw cannotWrite(path, error)
  } finally {
    for (const name of SIGNALS) process.off(name, interrupt)
  }
}
