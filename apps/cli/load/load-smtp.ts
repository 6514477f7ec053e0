import { Option, type Command } from 'commander'
import type { Connection } from '#clients/typescript/src/connection.js'
import type { Schemas } from '#clients/typescript/src/options.js'
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
import { EXIT, Failure, cannotWrite } from '../failure.js'
import { MAX_PAGE_SIZE } from '../inboxes.js'
import { onInterrupt } from '../interrupts.js'
import { facts } from '../printing.js'
import type { Session } from '../session.js'
import { closeManifest, openManifest } from './manifest.js'
import { showProgress } from './progress.js'
import { countsText, latencyText } from './smtp-results.js'
import { SmtpRun, type SmtpReport, type SmtpRunOptions } from './smtp-run.js'
import type { SmtpTarget } from './smtp-session.js'

interface SmtpOptions extends Omit<SmtpRunOptions, 'target' | 'total' | 'recipients' | 'manifest'> {
  inboxes: number
  label: readonly string[]
  reuse?: boolean
  target: Pick<SmtpTarget, 'host' | 'port'>
  tls: SmtpTarget['tls']
  insecure?: boolean
  duration?: number
  mails?: number
  manifest?: string
}

const HELP = `
Mail is sent at times that do not depend on how fast the target answers. If it is slower, mails wait, and the latency
counts from the time at which they were due. Ctrl-C ends the run with its report within about five seconds.`

const MAX_BULK = 10_000
const BULK_TIMEOUT_MS = 300_000

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

async function sendMail(options: SmtpOptions, total: number, api: Connection) {
  const { tls, insecure = false, manifest: path } = options
  using interrupts = onInterrupt()
  const { signal } = interrupts
  const finding = options.reuse === true ? reused(options, api, signal) : created(options, api, signal)
  const recipients = await finding.catch((error: unknown) => {
    throw signal.aborted ? new Failure(EXIT.interrupted, 'interrupted') : error
  })
  // Last, since it replaces the manifest of an earlier run.
  const manifest = path === undefined ? null : await openManifest(path)
  const target = { ...options.target, tls, isInsecure: insecure }
  const run = new SmtpRun({ ...options, target, total, recipients, manifest })
  signal.addEventListener('abort', () => run.stop('interrupted'))
  const endProgress = showProgress(process.stderr, () => run.progress())
  const end = await run.run()
  endProgress()
  if (manifest !== null) await closeManifest(manifest)
  return { report: run.report(), end, inboxes: recipients.length, manifestError: manifest?.errored ?? null }
}

/** The addresses of the active inboxes that have the labels. */
async function reused({ inboxes: limit, label }: SmtpOptions, api: Connection, signal: AbortSignal) {
  const query = { label, state: 'active', limit, signal }
  const found = await api.list<Schemas['Inbox']>('/v1/inboxes', query, MAX_PAGE_SIZE)
  if (found.length > 0) return found.map(({ address }) => address)
  throw new Failure(EXIT.notFound, `no active inbox has the label ${label.join(' ')}`)
}

/** The addresses of new inboxes with the labels. */
async function created({ inboxes: total, label }: SmtpOptions, api: Connection, signal: AbortSignal) {
  const addresses: string[] = []
  while (addresses.length < total) {
    const count = Math.min(total - addresses.length, MAX_BULK)
    const options = { count, labels: pairsOf(label), signal, timeoutMs: BULK_TIMEOUT_MS }
    const some = await api.post<Schemas['CreatedInbox'][]>('/v1/inboxes/bulk', options)
    for (const { address } of some) addresses.push(address)
  }
  return addresses
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
  const { labels, errors, rate, seconds, latency_ms: latencyMs, ...others } = report
  const { max_lag_ms: lagMs, is_interrupted: _, ...counts } = others
  return facts({
    ...counts,
    label: labels.join(' '),
    refused: countsText(report.refused),
    'connection errors': countsText(errors),
    rate: `${rate.reached.toFixed(1)}/s of ${rate.wanted.toFixed(1)}/s, ${seconds.toFixed(1)} s in all`,
    'ms from schedule': latencyText(latencyMs.from_schedule),
    'ms from start': latencyText(latencyMs.from_start),
    'lag ms': `at most ${lagMs.toFixed(1)}`,
  })
}
