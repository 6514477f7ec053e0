import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '#libs/runtime/errors.js'
import { bodyContext, sealJson, unsealMailNow } from '#libs/ports/key-vault/content.js'
import { SealBrokenError, secretKey, type SecretKey } from '#libs/ports/key-vault/seal.js'
import type { Envelope, ParsedMail } from '#libs/mail/message.js'
import { parseMail, parseHeader, parseNothing } from '#libs/mail/parse.js'
import type { Defeat, ParseOrder, ParseResult, ParseTask } from './parse-task.js'
import { ThreadProgress, type ParseThreadData } from './parse-thread.js'

/** So long at most does a mail that has been read wait for those behind it. */
const TELL_AFTER_MS = 25

const { memory, niceness } = workerData as ParseThreadData
const progress = new ThreadProgress(memory)
parentPort?.once('message', (orders: ParseOrder[]) => {
  void readAll(orders)
  parentPort?.on('message', (more: ParseOrder[]) => void readAll(more))
  // The first ones warm it, for which somebody may wait. On Linux a priority is the thread's own.
  if (process.platform === 'linux') setImmediate(() => setPriority(niceness))
})

/** Opens, parses and seals again a few mails; tells each, and null at the end. */
async function readAll(orders: readonly ParseOrder[]): Promise<void> {
  let results: ParseResult[] = []
  let toldAtMs = performance.now()
  for (const [index, order] of orders.entries()) {
    // The first one counts as begun as soon as it was given.
    if (index > 0 && progress.isToStop) break
    const startMs = cpuMs()
    progress.begin(index, startMs)
    const read = await readOne(order)
    results.push({ ...read, cpuMs: cpuMs() - startMs })
    if (performance.now() - toldAtMs < TELL_AFTER_MS) continue
    parentPort?.postMessage(results)
    results = []
    toldAtMs = performance.now()
  }
  if (results.length > 0) parentPort?.postMessage(results)
  parentPort?.postMessage(null)
}

async function readOne({ task, defeat }: ParseOrder): Promise<Omit<ParseResult, 'cpuMs'>> {
  const { inboxId, messageId } = task
  const key = secretKey(Buffer.from(task.key))
  const opened = open(task, key)
  const { mail, hasFailed } =
    opened === null ? { mail: damaged(task), hasFailed: true } : await readOrNot(opened, defeat)
  const body = sealJson(key, bodyContext(inboxId, messageId), mail)
  // In memory of its own: what is posted takes all of the memory along that it lies in.
  return { messageId, body: new Uint8Array(body), hasFailed }
}

/** Null if the bytes are not what was accepted: no other try will open them. */
function open(
  { inboxId, messageId, sealed }: ParseTask,
  key: SecretKey,
): { envelope: Envelope; raw: Buffer } | null {
  try {
    return unsealMailNow(key, inboxId, messageId, sealed)
  } catch (error) {
    if (error instanceof SealBrokenError) return null
    throw error
  }
}

function damaged({ size }: ParseTask): ParsedMail {
  const envelope = { mailFrom: '', rcptTo: '', helo: '', remoteAddress: '', tls: null }
  const detail = 'the stored mail is damaged and can not be opened'
  return { ...parseNothing(Buffer.alloc(0), envelope, { code: 'seal-broken', detail }), size, sha256: '' }
}

async function readOrNot(
  { raw, envelope }: { raw: Buffer; envelope: Envelope },
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
