import { type Command, Option } from 'commander'
import type { Schemas } from '#clients/typescript/src/options.js'
import { EXPORT_FORMATS, EXPORT_TABLES, USAGE_INTERVALS } from '#libs/ports/usage/usage-store.js'
import { messageOf } from '#libs/runtime/errors.js'
import { label, time } from './arguments.js'
import { EXIT, Failure, failureFrom } from './failure.js'
import { writeFileAtomically } from './files.js'
import { facts, table } from './printing.js'
import type { Session } from './session.js'

type Quantiles = Schemas['Quantiles']

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
    .action((options: ShowOptions) => {
      const rows = session.api().get<Schemas['UsageRow'][]>('/v1/usage', options)
      return session.print(rows, (shown) => rowsText(shown, options.groupBy))
    })
}

function reportCommand(usage: Command, session: Session): void {
  withSpan(usage.command('report'), 'the last 90 days')
    .description('summary of a load run: everything that has a label')
    .requiredOption('--label <name:value>', 'can be repeated: all must match', label)
    .action((options: SpanOptions & { label: readonly string[] }) => {
      const report = session.api().get<Schemas['UsageReport']>('/v1/usage/report', options)
      return session.print(report, reportText)
    })
}

/** Until an export begins. */
const EXPORT_TIMEOUT_MS = 15 * 60_000

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
      const api = session.api()
      const request = async (signal?: AbortSignal) => {
        const given = { ...query, signal, timeoutMs: EXPORT_TIMEOUT_MS }
        return readable(await api.stream('/v1/usage/export', given).catch(rethrowAsFailure))
      }
      if (output === undefined) {
        await session.writeAll(await request())
        return
      }
      const bytes = await writeFileAtomically(output, request)
      await session.print({ output, bytes }, () => facts({ file: output, bytes }))
    })
}

function rethrowAsFailure(error: unknown): never {
  throw failureFrom(error)
}

async function* readable(answer: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* answer
  } catch (error) {
    throw new Failure(EXIT.failed, `the answer can't be read: ${messageOf(error)}`)
  }
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

function rowsText(rows: readonly Schemas['UsageRow'][], groupBy: string | undefined): string {
  const isGrouped = groupBy !== undefined && groupBy !== 'none'
  const names = ['requests', 'refusals', 'inboxes', 'mails', 'bytes']
  return table(
    ['from', ...(isGrouped ? [groupBy] : []), ...names, 'request ms', 'visible ms'],
    rows.map((row) => [
      row.from,
      ...(isGrouped ? [groupText(row)] : []),
      ...[row.requests, row.refusals, row.inboxes, row.mails, row.bytes],
      quantilesText(row.request_ms),
      quantilesText(row.visible_ms),
    ]),
  )
}

/** The group of a row. Names of keys are not unique. */
function groupText({ group, group_name: name }: Schemas['UsageRow']): string | null {
  return name === null ? group : `${name} (${group})`
}

function reportText(report: Schemas['UsageReport']): string {
  const { accept_ms: acceptMs, timeline } = report
  return facts({
    ...report,
    counted_up_to: report.counted_up_to ?? '-',
    accept_ms: acceptMs === null ? '-' : `${quantilesText(acceptMs)}, at most ${acceptMs.max.toFixed(1)}`,
    visible_ms: quantilesText(report.visible_ms),
    first_read_ms: quantilesText(report.first_read_ms),
    timeline: timeline.length === 0 ? null : timelineText(timeline),
  })
}

const BARS = '▁▂▃▄▅▆▇█'

/** A bar for each bucket, by its number of mails; a dot for a bucket without mail. */
function timelineText(timeline: Schemas['UsageReport']['timeline']): string {
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
