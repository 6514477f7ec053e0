import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { mintId } from '#libs/domain/ids/mint.js'
import { messageOf } from '#libs/runtime/errors.js'
import {
  bodyContext,
  packSource,
  sealJson,
  sealMail,
  unsealMailNow,
  makeSecretKey,
  SealBrokenError,
  secretKey,
} from '#libs/ports/key-vault/content.js'
import type { Envelope, ParsedMail } from '#libs/mail/message.js'
import { parseMail, parseHeader, parseNothing } from '#libs/mail/parse.js'
import type { Defeat, ParseOrder, ParseResult } from './parse-task.js'
import { PROGRESS, type ParseThreadData } from './parse-thread.js'

/** Results are posted together, but none waits longer than this for the mails behind it. */
const POST_AFTER_MS = 25
const WARM_UP_MAILS = 20
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

const { progress, niceness } = workerData as ParseThreadData
await warmUp()
// Only now, because somebody may be waiting for the thread to be ready. On Linux each thread has its own priority.
if (process.platform === 'linux') setPriority(niceness)
parentPort?.on('message', (orders: ParseOrder[]) => void readAll(orders))

/** Reads a sample until what reading mail takes is compiled: the first mail costs many times what it costs later. */
async function warmUp(): Promise<void> {
  const [inboxId, messageId, key] = [mintId('inb'), mintId('msg'), makeSecretKey()]
  const source = await packSource(Buffer.from(SAMPLE))
  const sealed = sealMail(key, inboxId, messageId, NO_ENVELOPE, source)
  const accountId = mintId('acc')
  const task = { accountId, inboxId, messageId, receivedAt: new Date(0), key, size: source.size, sealed }
  for (let read = 0; read < WARM_UP_MAILS; read += 1) await readOne({ task, defeat: null })
}

/** Opens, parses and seals mails in order; posts their results, and null at the end. */
async function readAll(orders: readonly ParseOrder[]): Promise<void> {
  let results: ParseResult[] = []
  let postedAtMs = performance.now()
  for (const [index, order] of orders.entries()) {
    // The first one counts as begun as soon as it was given.
    if (index > 0 && progress[PROGRESS.mustStop] === 1) break
    const startMs = cpuMs()
    progress[PROGRESS.startMs] = startMs
    progress[PROGRESS.index] = index
    const read = await readOne(order)
    results.push({ ...read, cpuMs: cpuMs() - startMs })
    if (performance.now() - postedAtMs < POST_AFTER_MS) continue
    parentPort?.postMessage(results)
    results = []
    postedAtMs = performance.now()
  }
  if (results.length > 0) parentPort?.postMessage(results)
  parentPort?.postMessage(null)
}

async function readOne({ task, defeat }: ParseOrder): Promise<Omit<ParseResult, 'cpuMs'>> {
  const { inboxId, messageId, sealed, size } = task
  const key = secretKey(Buffer.from(task.key))
  let read: { mail: ParsedMail; hasFailed: boolean }
  try {
    const { raw, envelope } = unsealMailNow(key, inboxId, messageId, sealed)
    read = await parse(raw, envelope, defeat)
  } catch (error) {
    // The bytes are not what was accepted: no other attempt will open them.
    if (!(error instanceof SealBrokenError)) throw error
    read = { mail: damaged(size), hasFailed: true }
  }
  const body = sealJson(key, bodyContext(inboxId, messageId), read.mail)
  // A copy, because posting a view transfers all of the memory that it is a part of.
  return { messageId, body: new Uint8Array(body), hasFailed: read.hasFailed }
}

function damaged(size: number): ParsedMail {
  const detail = 'the stored mail is damaged and can not be opened'
  return { ...parseNothing(Buffer.alloc(0), NO_ENVELOPE, { code: 'seal-broken', detail }), size, sha256: '' }
}

async function parse(
  raw: Buffer,
  envelope: Envelope,
  defeat: Defeat | null,
): Promise<{ mail: ParsedMail; hasFailed: boolean }> {
  if (defeat !== null) {
    const { shows, ...warning } = defeat
    const read = shows === 'header' ? parseHeader : parseNothing
    return { mail: await read(raw, envelope, warning), hasFailed: false }
  }
  try {
    return { mail: await parseMail(raw, envelope), hasFailed: false }
  } catch (error) {
    const warning = { code: 'parse-failed', detail: messageOf(error) } as const
    return { mail: await parseHeader(raw, envelope, warning), hasFailed: true }
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
