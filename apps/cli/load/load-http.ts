import { Option, type Command } from 'commander'
import type { ApiClient, Session } from '../api-client.js'
import { label, pairsOf, wholeNumber } from '../arguments.js'
import { EXIT, Failure } from '../failure.js'
import { facts } from '../printing.js'
import { countsText } from './counts.js'
import type { HttpReport, OperationReport } from './http-run.js'
import { interrupted, onInterrupt } from './interrupts.js'
import { latencyText } from './latency.js'
import { arrivalCount, operationMix, rate, timeSpan, type Operation } from './load-arguments.js'
import { inboxesOf, type InboxOptions } from './load-inboxes.js'
import { runWithProgress } from './progress.js'

interface HttpOptions extends InboxOptions {
  rate: number
  duration: number
  mix: ReadonlyMap<Operation, number>
  connections: number
  wait: number
}

const DEFAULT_MIX = 'create=10,list=60,wait=30'

const HELP = `
Operations: create makes an inbox with the labels, list lists the messages of an inbox of the run, wait waits for a
message in one. Requests are sent at times that do not depend on the answers; the latency counts from those times.
No request is sent again, also if the answer is 429.`

/** `mayfly load http` */
export function loadHttpCommand(load: Command, session: Session): void {
  load
    .command('http')
    .description('send requests to the API at a fixed rate')
    .requiredOption('--rate <rate>', 'requests per second, minute or hour, such as 100/s', rate)
    .requiredOption('--duration <time>', 'how long requests are due, such as 30s or 5m', timeSpan)
    .requiredOption('--label <name:value>', 'label of the inboxes; can be repeated', label)
    .addOption(
      new Option('--mix <shares>', 'share of each operation')
        .argParser(operationMix)
        .default(operationMix(DEFAULT_MIX), DEFAULT_MIX),
    )
    .option('--connections <count>', 'requests at the same time', wholeNumber(1, 10_000), 50)
    .option(
      '--inboxes <count>',
      'number of inboxes to create first; with --reuse the maximum',
      wholeNumber(),
      100,
    )
    .option('--reuse', 'use the active inboxes that have the label, instead of new ones')
    .option('--wait <seconds>', 'how long a request of wait waits', wholeNumber(0, 55, 'seconds'), 1)
    .addHelpText('after', HELP)
    .action(async (options: HttpOptions) => {
      const report = await sendRequests(options, session.api())
      await session.print(report, reportText)
      if (report.is_interrupted) throw interrupted()
      const failed = failuresOf(report)
      if (failed > 0)
        throw new Failure(EXIT.failed, `${failed} requests had no answer, or one of 500 or more`)
    })
}

async function sendRequests(options: HttpOptions, api: ApiClient): Promise<HttpReport> {
  const { rate: perSecond, connections, mix, wait } = options
  const total = arrivalCount(perSecond, options.duration)
  using interrupts = onInterrupt()
  const inboxes = await inboxesOf(options, api, interrupts.signal)
  const labels = pairsOf(options.label)
  // Loaded here, since no other command needs undici.
  const { HttpRun } = await import('./http-run.js')
  const { url, key } = api
  const limits = { perSecond, total, connections, waitSeconds: wait }
  const run = new HttpRun({ url, key, mix, inboxes, labels, ...limits })
  await runWithProgress(run, interrupts.signal)
  return run.report()
}

function failuresOf({ operations }: HttpReport): number {
  const counts = Object.values(operations).flatMap(({ statuses, errors }) => [
    ...Object.values(errors),
    ...Object.entries(statuses).flatMap(([status, count]) => (Number(status) >= 500 ? [count] : [])),
  ])
  return counts.reduce((sum, count) => sum + count, 0)
}

function reportText(report: HttpReport): string {
  const operations = Object.entries(report.operations).flatMap(([name, operation]) =>
    Object.entries(operationFacts(operation)).map(([fact, value]) => [`${name}: ${fact}`, value] as const),
  )
  const { rate: reached, seconds, max_retry_after_s: retryAfterS } = report
  return facts({
    scheduled: report.scheduled,
    requests: report.requests,
    rate: `${reached.reached.toFixed(1)}/s of ${reached.wanted.toFixed(1)}/s, ${seconds.toFixed(1)} s in all`,
    'lag ms': `at most ${report.max_lag_ms.toFixed(1)}`,
    'retry after': retryAfterS === null ? null : `at most ${retryAfterS} s`,
    ...Object.fromEntries(operations),
  })
}

function operationFacts({
  statuses,
  errors,
  latency_ms: latencyMs,
}: OperationReport): Record<string, string> {
  return {
    statuses: countsText(statuses),
    errors: countsText(errors),
    'ms from schedule': latencyText(latencyMs.from_schedule),
    'ms from start': latencyText(latencyMs.from_start),
  }
}
