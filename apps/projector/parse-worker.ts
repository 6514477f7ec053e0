import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { mintId } from '#libs/domain/ids/mint.js'
import type { Envelope, ParsedMail } from '#libs/mail/message.js'
import {
  parseHeader,
  parseNothing,
  parseWithSpans,
  propertiesOfCopy,
  type MailWithSpans,
} from '#libs/mail/parse.js'
import { SEAL_BROKEN } from '#libs/mail/stored-mail.js'
import {
  packSource,
  sealBody,
  sealMail,
  makeSecretKey,
  SealBrokenError,
  secretKey,
  unsealMailSync,
} from '#libs/ports/key-vault/sealing.js'
import { messageOf } from '#libs/runtime/errors.js'
import type { ParseFallback, ParseRequest, ParseResult } from './parse-task.js'
import { PROGRESS, type ParseProgress } from './parse-thread.js'

/** Results are posted together, but no result waits longer than this for the next mails. */
const POST_AFTER_MS = 25
const WARM_UP_MAILS = 20
/** How many parsed mails are kept, up to which size and for how long: no mail may stay in memory after its inbox. */
const RECENT = { mails: 16, maxBytes: 64 * 1024, forMs: 1_000 }
const NO_ENVELOPE: Envelope = { mailFrom: '', rcptTo: '', helo: '', remoteAddress: '', tls: null }
const SAMPLE = [
  'From: App <app@example.com>',
  'To: someone@example.com',
  'Subject: =?utf-8?Q?Your_code_is_493201?=',
  'Date: Sat, 21 Nov 2026 02:14:41 +0000',
  'Content-Type: multipart/alternative; boundary=part',
  '',
  '--part',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'Your code is 493201. https://example.com/verify?code=493201',
  '--part',
  'Content-Type: text/html; charset=utf-8',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  '<p>Your code is <b>493201</b>. <a href=3D"https://example.com/verify">Verify</a></p>',
  '--part--',
  '',
].join('\r\n')

/** Parsing yields to accepting mail, because accepted mail can wait. */
const NICENESS = 5

const progress = workerData as ParseProgress
const recent: ({ raw: Buffer } & MailWithSpans)[] = []
const forgetting = setTimeout(() => (recent.length = 0), RECENT.forMs).unref()
await warmUp()
// Lower the priority only after the warm-up, which the first mail may wait for. On Linux each thread has its own priority.
if (process.platform === 'linux') setPriority(NICENESS)
parentPort?.on('message', parseAll)

/** Parses a sample repeatedly, so that V8 compiles the code: the first mail would take many times longer. */
async function warmUp(): Promise<void> {
  const [inboxId, messageId, key] = [mintId('inb'), mintId('msg'), makeSecretKey()]
  const source = await packSource(Buffer.from(SAMPLE))
  const sealed = sealMail(key, inboxId, messageId, NO_ENVELOPE, source)
  const accountId = mintId('acc')
  const task = { accountId, inboxId, messageId, receivedAt: new Date(0), key, size: source.size, sealed }
  for (let parsed = 0; parsed < WARM_UP_MAILS; parsed += 1) {
    parseOne({ task, fallback: null })
    recent.pop()
  }
}

/** Unseals, parses and seals mails in order. Posts the results, and null at the end. */
function parseAll(requests: readonly ParseRequest[]): void {
  let results: ParseResult[] = []
  let postedAtMs = performance.now()
  for (const [index, request] of requests.entries()) {
    const startMs = cpuMs()
    progress[PROGRESS.startMs] = startMs
    progress[PROGRESS.index] = index
    const parsed = parseOne(request)
    results.push({ ...parsed, cpuMs: cpuMs() - startMs })
    if (performance.now() - postedAtMs < POST_AFTER_MS) continue
    parentPort?.postMessage(results)
    results = []
    postedAtMs = performance.now()
  }
  if (results.length > 0) parentPort?.postMessage(results)
  parentPort?.postMessage(null)
}

function parseOne({ task, fallback }: ParseRequest): Omit<ParseResult, 'cpuMs'> {
  const { inboxId, messageId, sealed, size } = task
  const key = secretKey(Buffer.from(task.key))
  let parsed: MailWithSpans & { hasFailed: boolean }
  try {
    const { raw, envelope } = unsealMailSync(key, inboxId, messageId, sealed)
    parsed = parse(raw, envelope, fallback)
  } catch (error) {
    // The sealed bytes are damaged: a retry would fail too.
    if (!(error instanceof SealBrokenError)) throw error
    parsed = { mail: damaged(size), spans: {}, hasFailed: true }
  }
  const body = sealBody(key, { inboxId, messageId }, parsed)
  // A copy, because posting a view copies the whole buffer behind it.
  return { messageId, body: new Uint8Array(body), hasFailed: parsed.hasFailed }
}

function damaged(size: number): ParsedMail {
  return { ...parseNothing(Buffer.alloc(0), NO_ENVELOPE, SEAL_BROKEN), size }
}

function parse(
  raw: Buffer,
  envelope: Envelope,
  fallback: ParseFallback | null,
): MailWithSpans & { hasFailed: boolean } {
  if (fallback !== null) {
    const { shows, ...warning } = fallback
    const parsePart = shows === 'header' ? parseHeader : parseNothing
    return { mail: parsePart(raw, envelope, warning), spans: {}, hasFailed: false }
  }
  try {
    return { ...parseCopy(raw, envelope), hasFailed: false }
  } catch (error) {
    const warning = { code: 'parse-failed', detail: messageOf(error) } as const
    return { mail: parseHeader(raw, envelope, warning), spans: {}, hasFailed: true }
  }
}

/** Parses the copies of a small mail to many recipients once. They differ only in their envelopes. */
function parseCopy(raw: Buffer, envelope: Envelope): MailWithSpans {
  if (raw.length > RECENT.maxBytes) {
    // A large mail may need their memory.
    recent.length = 0
    return parseWithSpans(raw, envelope)
  }
  const known = recent.find((other) => other.raw.equals(raw))
  if (known !== undefined) {
    const mail = { ...known.mail, ...propertiesOfCopy(known.mail, envelope) }
    return { mail, spans: known.spans }
  }
  const parsed = parseWithSpans(raw, envelope)
  recent.push({ raw, ...parsed })
  forgetting.refresh()
  if (recent.length > RECENT.mails) recent.shift()
  return parsed
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
