import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { messageOf } from '#libs/runtime/errors.js'
import type { ApiClient, Session } from '../api-client.js'
import { oneLabel, timeSpan, wholeNumber } from '../arguments.js'
import { EXIT, Failure, failureOf, type ProblemJson, cannotWrite } from '../failure.js'
import {
  KINDS,
  type DifferenceJson,
  type Kind,
  type SummaryJson,
  type UsageJson,
  type Verification,
  verificationText,
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
      if (html !== undefined) await write(html, htmlPage(verification))
      if (!verification.passed) throw new Failure(EXIT.differs, failureText(verification))
    })
}

type Compared = Omit<Verification, 'usage'>

async function untilNothingIsMissing(api: ApiClient, options: VerifyOptions): Promise<Compared> {
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
async function compare(api: ApiClient, options: VerifyOptions): Promise<Compared> {
  const { label, manifest, late, idHeader, order, digest, show } = options
  const path = `/v1/runs/${encodeURIComponent(label)}/verify`
  const query = {
    late_ms: late === undefined ? undefined : String(late),
    id_header: idHeader,
    order: order === true ? 'true' : undefined,
  }
  let file = new ManifestFile(manifest, digest)
  const lines = () => {
    file = new ManifestFile(manifest, digest)
    return file.lines()
  }
  const answer = await api.exchange(path, { query, lines })
  const differences: Record<Kind, DifferenceJson[]> = {
    missing: [],
    erased: [],
    duplicate: [],
    unexpected: [],
    late: [],
    altered: [],
    reordered: [],
  }
  let summary: SummaryJson | null = null
  for await (const line of linesOf(answer)) {
    const parsed = JSON.parse(line) as
      DifferenceJson | SummaryJson | { kind: 'problem'; problem: ProblemJson }
    if (parsed.kind === 'summary') summary = parsed
    else if (parsed.kind === 'problem') throw failureOf(parsed.problem.status, parsed.problem)
    else if (differences[parsed.kind].length < show) differences[parsed.kind].push(file.located(parsed))
  }
  if (summary === null) throw new Failure(EXIT.failed, 'the answer ended before its summary')
  const { refused } = file
  const counts = summary
  const passed = KINDS.every((kind) => counts[kind] === 0)
  return { label, manifest, passed, refused, summary, differences }
}

interface ManifestLine {
  recipient?: unknown
  id?: unknown
  sent_at?: unknown
  accepted_at?: unknown
  sha256?: unknown
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
  async *lines(): AsyncGenerator<string> {
    let number = 0
    for await (const line of linesOf(this.bytes())) {
      number += 1
      if (line.trim() === '') continue
      const { recipient, id, sent_at, accepted_at: acceptedAt, sha256 } = this.parsed(line, number)
      if (acceptedAt === null) {
        this.refused += 1
        continue
      }
      this.numbers.push(number)
      yield `${JSON.stringify({ recipient, id, sent_at, ...(this.hasDigests ? { sha256 } : {}) })}\n`
    }
  }

  /** A difference with the line numbers of the file. */
  located(difference: DifferenceJson): DifferenceJson {
    const { line, after_line: afterLine } = difference
    const numberOf = (accepted: number) => this.numbers[accepted - 1] ?? accepted
    return {
      ...difference,
      ...(line === undefined ? {} : { line: numberOf(line) }),
      ...(afterLine === undefined ? {} : { after_line: numberOf(afterLine) }),
    }
  }

  private async *bytes(): AsyncGenerator<Uint8Array> {
    try {
      yield* createReadStream(this.path) as AsyncIterable<Uint8Array>
    } catch (error) {
      throw new Failure(EXIT.usage, `${this.path} can't be read: ${messageOf(error)}`)
    }
  }

  private parsed(line: string, number: number): ManifestLine {
    const refuse = (reason: string) => new Failure(EXIT.usage, `${this.path}, line ${number}: ${reason}`)
    let parsed: unknown = null
    try {
      parsed = JSON.parse(line)
    } catch {
      // It is refused below.
    }
    if (typeof parsed !== 'object' || parsed === null) throw refuse('not a JSON object')
    const { recipient, id } = parsed as ManifestLine
    if (typeof recipient !== 'string') throw refuse('recipient must be a string')
    if (typeof id !== 'string') throw refuse('id must be a string')
    return parsed
  }
}

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of bytes) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

/** Waits for a while until usage is counted up to now. Null if it is not counted, or can't be read now. */
async function readUsage(api: ApiClient, label: string): Promise<UsageJson | null> {
  const now = Date.now()
  const deadline = performance.now() + COUNTED_WITHIN_MS
  for (let latest: UsageJson | null = null; ;) {
    try {
      latest = await api.call<UsageJson>('GET', '/v1/usage/report', { query: { label } })
    } catch (error) {
      if (isUnavailable(error)) return latest
      throw error
    }
    if (Date.parse(latest.counted_up_to ?? '') >= now || performance.now() > deadline) return latest
    await pause(FIRST_PAUSE_MS)
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof Failure && error.exitCode === EXIT.unavailable
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
