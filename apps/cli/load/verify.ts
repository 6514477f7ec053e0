import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Connection } from '#clients/typescript/src/connection.js'
import type { Schemas } from '#clients/typescript/src/options.js'
import { Runs } from '#clients/typescript/src/runs.js'
import { messageOf } from '#libs/runtime/errors.js'
import { oneLabel, timeSpan, wholeNumber } from '../arguments.js'
import { EXIT, Failure, cannotWrite, failureFrom } from '../failure.js'
import type { Session } from '../session.js'
import {
  KINDS,
  verificationText,
  type Difference,
  type Kind,
  type Summary,
  type Verification,
} from './verification.js'
import { htmlPage, junitReport } from './verify-reports.js'

interface VerifyOptions {
  manifest: string
  label: string
  late?: number
  idHeader?: string
  order?: boolean
  digest: boolean
  show: number
  junit?: string
  html?: string
  wait: number
}

const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 10_000
/** Usage is counted a few seconds later. */
const COUNTED_WITHIN_MS = 10_000
const REPORT_TIMEOUT_MS = 5_000

/** `mayfly load verify` */
export function loadVerifyCommand(load: Command, session: Session): void {
  load
    .command('verify')
    .description('compare the mail of a load run with the manifest of what was sent')
    .requiredOption('--manifest <file>', 'the manifest, one JSON object per line')
    .requiredOption('--label <name:value>', 'the label of the inboxes of the run', oneLabel)
    .option('--late <time>', 'how long after it was sent a mail is late, such as 500ms, 5s or 2m', timeSpan)
    .option('--id-header <name>', 'the header that identifies a mail; default: Message-ID')
    .option('--order', 'also compare the order of the mail in each inbox')
    .option('--no-digest', 'do not compare the sources of the mail')
    .option('--show <count>', 'how many differences of each kind to print', wholeNumber(), 10)
    .option('--junit <file>', 'also write a JUnit XML report')
    .option('--html <file>', 'also write a report as an HTML page')
    .option('--wait <time>', 'repeat until no mail is missing, at most this long', timeSpan, 0)
    .action(async (options: VerifyOptions) => {
      const api = session.api()
      const compared = await untilNothingIsMissing(api, options)
      const verification = { ...compared, usage: await readUsage(api, options.label) }
      // First, since a file may not be writable.
      await session.print(verification, verificationText)
      const { junit, html } = options
      if (junit !== undefined) await write(junit, junitReport(verification))
      if (html !== undefined) await write(html, htmlPage(verification, new Date()))
      if (!verification.passed) throw new Failure(EXIT.differs, failureText(verification))
    })
}

type Compared = Omit<Verification, 'usage'>

async function untilNothingIsMissing(api: Connection, options: VerifyOptions): Promise<Compared> {
  const deadline = performance.now() + options.wait
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    const leftMs = () => deadline - performance.now()
    const compared = await compare(api, options).catch((error: unknown) => {
      if (isUnavailable(error) && leftMs() > 0) return null
      throw error
    })
    if (compared !== null && (compared.summary.missing === 0 || leftMs() <= 0)) return compared
    await pause(Math.min(pauseMs, Math.max(leftMs(), 0)))
  }
}

/** Sends the accepted lines of the manifest, and reads the differences. */
async function compare(api: Connection, options: VerifyOptions): Promise<Compared> {
  const { label, manifest, late: lateMs, idHeader, order, digest, show } = options
  const file = new ManifestFile(manifest, digest)
  const differences: Record<Kind, Difference[]> = {
    ...{ missing: [], erased: [], duplicate: [], unexpected: [], late: [], altered: [], reordered: [] },
  }
  let summary: Summary | null = null
  for await (const line of new Runs(api).verify(label, file.lines(), { lateMs, idHeader, order })) {
    if (line.kind === 'summary') summary = line
    else if (differences[line.kind].length < show) differences[line.kind].push(file.located(line))
  }
  if (summary === null) throw new Failure(EXIT.failed, 'the answer has no summary')
  const { refused } = file
  const counts = summary
  const passed = KINDS.every((kind) => counts[kind] === 0)
  return { label, manifest, passed, refused, summary, differences }
}

/** One reading of a manifest. */
class ManifestFile {
  refused = 0
  /** The line in the file of each accepted line. */
  private readonly numbers: number[] = []

  constructor(
    private readonly path: string,
    private readonly hasDigests: boolean,
  ) {}

  /** The accepted lines, with the properties that the API reads. Rejects with Failure. */
  async *lines(): AsyncGenerator<Schemas['ManifestLine']> {
    let number = 0
    for await (const text of this.texts()) {
      number += 1
      if (text.trim() === '') continue
      const { accepted_at: acceptedAt, recipient, id, sent_at: sentAt, sha256 } = this.parsed(text, number)
      if (acceptedAt === null) {
        this.refused += 1
        continue
      }
      this.numbers.push(number)
      yield { recipient, id, sent_at: sentAt ?? null, sha256: this.hasDigests ? (sha256 ?? null) : null }
    }
  }

  /** A difference with the line numbers of the file. The API counts only the lines that it got. */
  located(difference: Difference): Difference {
    const located = { ...difference }
    const numberOf = (accepted: number) => this.numbers[accepted - 1] ?? accepted
    if (located.line !== undefined) located.line = numberOf(located.line)
    if ('after_line' in located) located.after_line = numberOf(located.after_line)
    return located
  }

  private async *texts(): AsyncGenerator<string> {
    let rest = ''
    try {
      for await (const piece of createReadStream(this.path, 'utf8') as AsyncIterable<string>) {
        const lines = (rest + piece).split('\n')
        rest = lines.pop() ?? ''
        yield* lines
      }
    } catch (error) {
      throw new Failure(EXIT.usage, `${this.path} can't be read: ${messageOf(error)}`)
    }
    yield rest
  }

  private parsed(text: string, number: number): Schemas['ManifestLine'] & { accepted_at?: unknown } {
    const refuse = (reason: string) => new Failure(EXIT.usage, `${this.path}, line ${number}: ${reason}`)
    let parsed: unknown = null
    try {
      parsed = JSON.parse(text)
    } catch {
      // It is refused below.
    }
    if (typeof parsed !== 'object' || parsed === null) throw refuse('not a JSON object')
    const line = parsed as Schemas['ManifestLine']
    if (typeof line.recipient !== 'string') throw refuse('recipient must be a string')
    if (typeof line.id !== 'string') throw refuse('id must be a string')
    return line
  }
}

/** Waits for a while until usage is counted up to now. Null if it is not counted, or can't be read now. */
async function readUsage(api: Connection, label: string): Promise<Verification['usage']> {
  const now = Date.now()
  const deadline = performance.now() + COUNTED_WITHIN_MS
  const query = { label, timeoutMs: REPORT_TIMEOUT_MS }
  for (let latest: Verification['usage'] = null; ;) {
    try {
      latest = await api.get<Schemas['UsageReport']>('/v1/usage/report', query)
    } catch (error) {
      if (isUnavailable(error)) return latest
      throw error
    }
    if (Date.parse(latest.counted_up_to ?? '') >= now || performance.now() > deadline) return latest
    await pause(FIRST_PAUSE_MS)
  }
}

function isUnavailable(error: unknown): boolean {
  return failureFrom(error).exitCode === EXIT.unavailable
}

function failureText({ summary, manifest }: Verification): string {
  const found = KINDS.filter((kind) => summary[kind] > 0).map((kind) => `${summary[kind]} ${kind}`)
  return `the mail differs from ${manifest}: ${found.join(', ')}`
}

async function write(path: string, content: string): Promise<void> {
  try {
    await writeFile(path, content)
  } catch (error) {
    throw cannotWrite(path, error)
  }
}
