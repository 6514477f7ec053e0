import { Option, type Command } from 'commander'
import { ApiError, Mayfly, MayflyError, UnreachableError } from '#clients/typescript/src/mayfly.js'
import type { ApiClient, Session } from '../api-client.js'
import {
  arrivalCount,
  hostAndPort,
  label,
  mailSize,
  pairsOf,
  rate,
  senderAddress,
  timeSpan,
  wholeNumber,
} from '../arguments.js'
import { EXIT, Failure, cannotWrite, failureOf } from '../failure.js'
import { facts } from '../printing.js'
import { MailMix } from './mail-mix.js'
import { Manifest } from './manifest.js'
import { Progress } from './progress.js'
import { SmtpRun, type SmtpReport, type SmtpRunEnd } from './smtp-run.js'
import type { TlsMode } from './smtp-connection.js'
import { countsText, latencyText } from './smtp-results.js'

interface SmtpOptions {
  inboxes: number
  label: readonly string[]
  reuse?: boolean
  target: { host: string; port: number }
  tls: TlsMode
  insecure?: boolean
  rate: number
  duration?: number
  mails?: number
  connections: number
  size: number
  from: string
  manifest?: string
  retries: number
  retryDelay: number
}

const HELP = `
Mail is sent at times that do not depend on how fast the target answers. If it is slower, mails wait, and the latency
counts from the time at which they were due. Ctrl-C ends the run with its report within about five seconds.`

const MAX_BULK = 10_000
const MAX_PAGE_SIZE = 1_000
const BULK_TIMEOUT_MS = 300_000
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** `mayfly load smtp` */
export function loadSmtpCommand(load: Command, session: Session): void {
  load
    .command('smtp')
    .description('send mail at a fixed rate to inboxes of a label')
    .requiredOption(
      '--target <host:port>',
      'SMTP server: that of Mayfly, or of an application that relays to it',
      hostAndPort,
    )
    .requiredOption('--rate <rate>', 'mails per second, minute or hour, such as 500/s', rate)
    .requiredOption('--label <name:value>', 'label of the inboxes; can be repeated', label)
    .option('--duration <time>', 'how long to send mail, such as 30s or 5m', timeSpan)
    .option('--mails <count>', 'number of mails; with --duration the smaller one applies', wholeNumber())
    .option('--connections <count>', 'connections at the same time', wholeNumber(1, 10_000), 10)
    .option('--inboxes <count>', 'number of inboxes to create; with --reuse the maximum', wholeNumber(), 100)
    .option('--reuse', 'send to the active inboxes that have the label, instead of new ones')
    .addOption(
      new Option('--size <bytes>', 'about the size of a mail').argParser(mailSize).default(5_120, '5k'),
    )
    .addOption(
      new Option('--tls <mode>', 'encryption').choices(['none', 'starttls', 'implicit']).default('none'),
    )
    .option('--insecure', 'accept any certificate of the target')
    .option('--from <address>', 'sender of the mails', senderAddress, 'load-test@app.example')
    .option(
      '--retries <count>',
      'attempts after the first one, if a reply is 4xx or the connection is lost',
      wholeNumber(0, 999),
      5,
    )
    .addOption(
      new Option('--retry-delay <time>', 'time until the first retry; each further one takes twice as long')
        .argParser(timeSpan)
        .default(1_000, '1s'),
    )
    .option('--manifest <file>', 'write what was sent to a file, as NDJSON; replaces an existing file')
    .addHelpText('after', HELP)
    .action(async (options: SmtpOptions) => {
      const total = arrivalCount(options.rate, options.duration, options.mails)
      const { report, end, inboxes, manifestError } = await sendMail(options, total, session.api())
      const target = hostText(options.target)
      const reasons = Object.keys(report.errors).join(', ')
      const unreachable = new Failure(EXIT.unavailable, `no connection to ${target}: ${reasons}`)
      if (end === 'unreachable' && report.sent === 0) throw unreachable
      const { label: labels, manifest = null } = options
      const shown = { target, labels, inboxes, ...report, manifest }
      await session.print(shown, reportText)
      if (manifestError !== null) throw cannotWrite(manifest ?? '', manifestError)
      if (end === 'interrupted') throw new Failure(EXIT.interrupted, 'interrupted')
      if (end === 'unreachable') throw unreachable
      const missing = report.scheduled - report.accepted
      if (missing > 0)
        throw new Failure(EXIT.failed, `${missing} of ${report.scheduled} mails were not accepted`)
    })
}

interface SentMail {
  report: SmtpReport
  end: SmtpRunEnd
  inboxes: number
  manifestError: Error | null
}

async function sendMail(options: SmtpOptions, total: number, api: ApiClient): Promise<SentMail> {
  const { rate: perSecond, connections, from, manifest: path } = options
  using interrupts = onInterrupt()
  const inboxes = await (options.reuse === true ? reused : created)(options, api, interrupts.signal).catch(
    (error: unknown) => {
      throw interrupts.signal.aborted ? new Failure(EXIT.interrupted, 'interrupted') : error
    },
  )
  // Last, since it replaces the manifest of an earlier run.
  const manifest =
    path === undefined
      ? null
      : await Manifest.open(path, {
          onDrain: () => run.wake(),
          onError: () => run.stop('manifest-failed'),
        }).catch((error: unknown) => {
          throw cannotWrite(path, error)
        })
  const run: SmtpRun = new SmtpRun({
    target: { ...options.target, tls: options.tls, isInsecure: options.insecure === true },
    ...{ connections, perSecond, total, manifest },
    sender: from,
    recipients: inboxes,
    mix: new MailMix(options.size, from),
    runId: `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 10)}`,
    maxRetries: options.retries,
    retryDelayMs: options.retryDelay,
  })
  interrupts.signal.addEventListener('abort', () => run.stop('interrupted'))
  const progress = new Progress(process.stderr, () => run.progress())
  const end = await run.run()
  progress.end()
  await manifest?.close()
  return { report: run.report(), end, inboxes: inboxes.length, manifestError: manifest?.error ?? null }
}

/** The active inboxes that have the labels. Rejects with Failure. */
async function reused({ inboxes: count, label }: SmtpOptions, api: ApiClient, signal: AbortSignal) {
  const query = { label, state: 'active' }
  const found = await api.list<{ address: string }>('/v1/inboxes', count, { query, signal }, MAX_PAGE_SIZE)
  if (found.length > 0) return found.map(({ address }) => address)
  throw new Failure(EXIT.notFound, `no active inbox has the label ${label.join(' ')}`)
}

/** New inboxes with the labels. Rejects with Failure. */
async function created({ inboxes: count, label }: SmtpOptions, api: ApiClient, signal: AbortSignal) {
  const mayfly = new Mayfly({ url: api.url, apiKey: api.key, timeoutMs: BULK_TIMEOUT_MS })
  const addresses: string[] = []
  while (addresses.length < count) {
    const options = { count: Math.min(count - addresses.length, MAX_BULK), labels: pairsOf(label), signal }
    const some = await mayfly.inboxes.createMany(options).catch((error: unknown) => {
      throw failureFrom(error)
    })
    for (const { address } of some) addresses.push(address)
  }
  return addresses
}

function failureFrom(error: unknown): unknown {
  if (error instanceof ApiError) return failureOf(error.status, error.problem)
  if (error instanceof UnreachableError) return new Failure(EXIT.unavailable, error.message)
  return error instanceof MayflyError ? new Failure(EXIT.failed, error.message) : error
}

/**
 * A signal that is aborted at the first Ctrl-C, or SIGTERM. The second one ends the process at once. Disposing stops
 * listening.
 */
function onInterrupt(): Disposable & { signal: AbortSignal } {
  const aborter = new AbortController()
  const interrupt = () => {
    if (aborter.signal.aborted) process.exit(EXIT.interrupted)
    process.stderr.write('\nstopping; press Ctrl-C again to end at once\n')
    aborter.abort()
  }
  for (const name of SIGNALS) process.on(name, interrupt)
  return {
    signal: aborter.signal,
    [Symbol.dispose]() {
      for (const name of SIGNALS) process.off(name, interrupt)
    },
  }
}

function hostText({ host, port }: { host: string; port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

interface ShownReport extends SmtpReport {
  target: string
  labels: readonly string[]
  inboxes: number
  manifest: string | null
}

function reportText(report: ShownReport): string {
  return facts({
    target: report.target,
    label: report.labels.join(' '),
    inboxes: report.inboxes,
    scheduled: report.scheduled,
    sent: report.sent,
    accepted: report.accepted,
    retried: report.retried,
    refused: countsText(report.refused),
    unknown: report.unknown,
    failed: report.failed,
    'possible duplicates': report.possible_duplicates,
    'connection errors': countsText(report.errors),
    rate: `${report.rate.reached.toFixed(1)}/s of ${report.rate.wanted.toFixed(1)}/s, ${report.seconds.toFixed(1)} s in all`,
    'ms from schedule': latencyText(report.latency_ms.from_schedule),
    'ms from start': latencyText(report.latency_ms.from_start),
    'lag ms': `at most ${report.max_lag_ms.toFixed(1)}`,
    manifest: report.manifest,
  })
}
