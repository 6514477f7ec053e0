import { createHash, hash } from 'node:crypto'
import { parseLeaf, readRecord, type Leaf } from '#libs/domain/audit/leaf.js'
import { isId, type AccountId } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { EVENTS_AT_ONCE, REBUILT_TOPICS, ScratchViews, withoutMail } from '#libs/engines/scratch-views.js'
import {
  accountEventCodec,
  inboxEventCodec,
  type Decoded,
  type EventCodec,
  type Recorded,
} from '#libs/ports/event-log/cloud-event.js'
import { accountState } from '#libs/ports/read-model/account-state.js'
import { loggedEvent, type LoggedEvent } from '#libs/ports/read-model/views.js'
import { messageOf } from '#libs/runtime/errors.js'
import { EXIT, Failure } from '../failure.js'
import {
  CHECKPOINT_FILE,
  ExportFiles,
  knownRecords,
  leavesOf,
  linesOf,
  MAX_NOTE_BYTES,
  RECORDS,
  type RecordsFile,
} from './export-files.js'

export interface Replay {
  /** How many leaves were replayed. */
  size: number
  /** How many of them have no record, because the event log no longer had it. */
  without_record: number
  /** Active ones. */
  inboxes: number
  ended_inboxes: number
  /** Of active inboxes. */
  messages: number
  /** SHA-256 of the lines of the state. */
  digest: string
}

/** More than the largest mail in base64, and less than the longest string. */
const MAX_RECORD_BYTES = 480 * 1024 * 1024

/**
 * Computes the state of the account from the first leaves of an export, by default all, in a scratch store. Yields the lines
 * of the state. Checks no signature, only that each record is that of its leaf. Throws Failure.
 */
export async function* replayExport(folder: string, wanted: number | null): AsyncGenerator<Buffer, Replay> {
  const files = new ExportFiles(folder, (what, why) => {
    throw new Failure(EXIT.differs, `${what}: ${why}`)
  })
  const exported = sizeOf(files)
  const size = wanted ?? exported
  if (size > exported) throw new Failure(EXIT.usage, `the export has ${exported} leaves`)
  await using scratch = await ScratchViews.open(1)
  const { accountId, missing } = await project(scratch, files, { exported, size })
  const replay = { size, without_record: missing, inboxes: 0, ended_inboxes: 0, messages: 0 }
  const digest = createHash('sha256')
  if (accountId === null || (await scratch.model.accounts.account(accountId)) === null) {
    throw new Failure(EXIT.notFound, 'the account did not exist then, or its record is missing')
  }
  for await (const { id, shown } of accountState(
    scratch.model,
    accountId,
    scratch.environmentsOf(accountId),
  )) {
    if (isId('msg', id)) replay.messages += 1
    if (isId('inb', id)) replay[shown.state === 'active' ? 'inboxes' : 'ended_inboxes'] += 1
    const line = Buffer.from(`${JSON.stringify({ id, ...shown })}\n`)
    digest.update(line)
    yield line
  }
  return { ...replay, digest: digest.digest('hex') }
}

/** Of the export's checkpoint. */
function sizeOf(files: ExportFiles): number {
  const note = files.read(CHECKPOINT_FILE, MAX_NOTE_BYTES)
  const [, size = ''] = note?.toString().split('\n') ?? []
  if (!/^(0|[1-9]\d{0,14})$/.test(size)) files.report(CHECKPOINT_FILE, 'it is not a checkpoint')
  return Number(size)
}

/** Projects the events of the leaves. Their offsets are the indexes of the leaves, so one partition has them all. */
async function project(
  scratch: ScratchViews,
  files: ExportFiles,
  { exported, size }: { exported: number; size: number },
) {
  for (const topic of REBUILT_TOPICS) await scratch.begin({ topic, partition: 0, first: 0, end: size })
  let accountId: AccountId | null = null
  let missing = 0
  let inboxEvents: LoggedEvent<InboxEvent>[] = []
  const flush = async (to: number) => {
    await scratch.projectInboxes(0, inboxEvents, to)
    inboxEvents = []
  }
  using records = recordsOf(files, exported, knownRecords(await files.names(RECORDS)))
  let index = 0
  for (const bytes of leavesOf(files, exported)) {
    if (index === size) break
    const { value: record = null } = records.next()
    const leaf = parseLeaf(bytes)
    if (leaf === null) throw new Failure(EXIT.differs, `leaf ${index}: it is not a leaf in canonical JSON`)
    if (record === null) missing += 1
    else if (leaf.topic === 'inbox-events') {
      const { event, ...recorded } = decode(inboxEventCodec, record, { ...leaf, index })
      accountId = sameAccount(accountId, recorded, index)
      inboxEvents.push(loggedEvent(index, { ...recorded, event: withoutMail(event) }))
      if (inboxEvents.length === EVENTS_AT_ONCE) await flush(index + 1)
    } else if (leaf.topic === 'account-events') {
      const recorded = decode(accountEventCodec, record, { ...leaf, index })
      accountId = sameAccount(accountId, recorded, index)
      await scratch.projectAccounts([loggedEvent(index, recorded)], index + 1)
    }
    index += 1
  }
  await flush(index)
  // The last file may have more lines than leaves.
  if (index === exported) records.next()
  return { accountId, missing }
}

/** Throws Failure if it is not the record of the leaf. */
function decode<Event extends { type: string }>(
  codec: EventCodec<Event>,
  record: Buffer,
  { index, recordSha256 }: Leaf & { index: number },
): Recorded<Event> {
  const wrong = (why: string) => new Failure(EXIT.differs, `record of leaf ${index}: ${why}`)
  if (hash('sha256', record) !== recordSha256) throw wrong('it is not the one that was logged')
  const found = decodeText(codec, record)
  if (found.kind === 'newer') {
    throw new Failure(EXIT.failed, `a newer version of Mayfly wrote ${found.type}: replay with that version`)
  }
  if (found.kind === 'undecodable') throw wrong(found.reason)
  return found.recorded
}

function decodeText<Event extends { type: string }>(
  codec: EventCodec<Event>,
  record: Buffer,
): Decoded<Event> {
  try {
    return codec.decode(readRecord(record.toString()))
  } catch (error) {
    return { kind: 'undecodable', reason: messageOf(error) }
  }
}

/** Throws Failure if a record is of another account than those before it. */
function sameAccount(
  known: AccountId | null,
  { accountId }: { accountId: AccountId },
  index: number,
): AccountId {
  if (known === null || known === accountId) return accountId
  throw new Failure(EXIT.differs, `record of leaf ${index}: it is of another account`)
}

/** The records of leaves, in turn, as they are hashed; null for one that the event log no longer had. Throws Failure. */
function* recordsOf(
  files: ExportFiles,
  size: number,
  known: ReadonlyMap<number, RecordsFile>,
): Generator<Buffer | null, undefined> {
  for (let from = 0; from < size;) {
    const file = known.get(from)
    if (file === undefined)
      throw new Failure(EXIT.differs, `${RECORDS}: there are no records of the leaves from ${from}`)
    try {
      yield* wholeLinesOf(files.folder, file)
    } catch (error) {
      throw new Failure(EXIT.differs, `${file.path}: ${messageOf(error)}`)
    }
    from = file.to
  }
}

/** The lines of a file; null for an empty one. */
function* wholeLinesOf(folder: string, file: RecordsFile): Generator<Buffer | null> {
  let parts: Buffer[] = []
  let length = 0
  for (const { bytes, isLast } of linesOf(folder, file)) {
    parts.push(bytes)
    length += bytes.length
    if (length > MAX_RECORD_BYTES) throw new Error(`a line has more than ${MAX_RECORD_BYTES} bytes`)
    if (!isLast) continue
    yield length === 0 ? null : Buffer.concat(parts)
    parts = []
    length = 0
  }
}
