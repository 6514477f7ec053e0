import { Option, type Command } from 'commander'
import type { ApiClient, Session } from '../api-client.js'
import { label, wholeNumber } from '../arguments.js'
import { EXIT, Failure, cannotWrite } from '../failure.js'
import { facts } from '../printing.js'
import { countsText } from './counts.js'
import { interrupted, onInterrupt } from './interrupts.js'
import { latencyText } from './latency.js'
import { arrivalCount, hostAndPort, mailSize, rate, senderAddress, timeSpan } from './load-arguments.js'
import { inboxesOf, type InboxOptions } from './load-inboxes.js'
import { MailMix } from './mail-mix.js'
import { Manifest } from './manifest.js'
import { runWithProgress } from './progress.js'
import { SmtpRun, type SmtpReport, type SmtpRunEnd } from './smtp-run.js'
import type { TlsMode } from './smtp-connection.js'

interface SmtpOptions extends InboxOptions {
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
      if (end === 'interrupted') throw interrupted()
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
  const inboxes = await inboxesOf(options, api, interrupts.signal)
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
    recipients: inboxes.map(({ address }) => address),
    mix: new MailMix(options.size, from),
    runId: `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 10)}`,
    maxRetries: options.retries,
    retryDelayMs: options.retryDelay,
  })
  const end = await runWithProgress(run, interrupts.signal)
  await manifest?.close()
  return { report: run.report(), end, inboxes: inboxes.length, manifestError: manifest?.error ?? null }
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
