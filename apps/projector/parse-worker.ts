import { createHash } from 'node:crypto'
import { setPriority } from 'node:os'
import { messageOf } from '#libs/fault/message-of.js'
import { bodyContext, sealJson, unsealMail } from '#libs/erasure/content.js'
import { SealBrokenError, secretKey, type SecretKey } from '#libs/erasure/seal.js'
import type { Envelope, ParsedMail, Warning } from '#libs/mail/message.js'
import { parseMail } from '#libs/mail/parse.js'
import type { ParseJob, ParseResult, ParseTask } from './parse-task.js'

const PARSING_NICENESS = 10

// Accepting mail goes before reading it: what was not accepted is lost to its sender, what was can wait. On Linux a
// priority is the thread's own.
if (process.platform === 'linux') setPriority(PARSING_NICENESS)

/** Runs in a thread of its own: opens, parses and seals again a few mails. */
export default async function parse({ tasks, defeat }: ParseJob): Promise<ParseResult[]> {
  const results: ParseResult[] = []
  for (const task of tasks) results.push(await parseOne(task, defeat))
  return results
}

async function parseOne(task: ParseTask, defeat: Warning | null): Promise<ParseResult> {
  const { inboxId, messageId } = task
  const key = secretKey(Buffer.from(task.key))
  const opened = await open(task, key)
  const mail = opened === null ? damaged(task) : await readOrNot(opened, defeat)
  const body = sealJson(key, bodyContext(inboxId, messageId), mail)
  // In memory of its own: what is posted takes all of the memory along that it lies in.
  return { messageId, body: new Uint8Array(body) }
}

/** Null where the bytes are not what was accepted: no other try will open them. */
async function open(
  { inboxId, messageId, sealed }: ParseTask,
  key: SecretKey,
): Promise<{ envelope: Envelope; raw: Buffer } | null> {
  try {
    return await unsealMail(key, inboxId, messageId, sealed)
  } catch (error) {
    if (error instanceof SealBrokenError) return null
    throw error
  }
}

function damaged({ size }: ParseTask): ParsedMail {
  const envelope = { mailFrom: '', rcptTo: '', helo: '', remoteAddress: '', tls: null }
  const detail = 'the stored mail is damaged and can not be opened'
  return { ...unread(Buffer.alloc(0), envelope, { code: 'seal-broken', detail }), size, sha256: '' }
}

async function readOrNot(
  { raw, envelope }: { raw: Buffer; envelope: Envelope },
  defeat: Warning | null,
): Promise<ParsedMail> {
  return defeat === null ? read(raw, envelope) : unread(raw, envelope, defeat)
}

async function read(raw: Buffer, envelope: Envelope): Promise<ParsedMail> {
  try {
    return await parseMail(raw, envelope)
  } catch (error) {
    const detail = messageOf(error)
    return unread(raw, envelope, { code: 'parse-failed', detail })
  }
}

/** What can be said of a mail that defeats the parser: its envelope and its source. */
function unread(raw: Buffer, envelope: Envelope, warning: Warning): ParsedMail {
  return {
    subject: null,
    sender: envelope.mailFrom,
    recipient: envelope.rcptTo,
    from: [],
    to: [],
    cc: [],
    replyTo: [],
    date: null,
    text: null,
    html: null,
    htmlText: null,
    links: [],
    codes: [],
    attachments: [],
    headers: [],
    envelope,
    size: raw.length,
    sha256: createHash('sha256').update(raw).digest('hex'),
    warnings: [warning],
  }
}
