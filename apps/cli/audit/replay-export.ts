import { createHash, hash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { parseLeaf, readRecord, type Leaf } from '#libs/domain/audit/leaf.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import {
  accountEventCodec,
  inboxEventCodec,
  type EventCodec,
  type Recorded,
} from '#libs/ports/event-log/cloud-event.js'
import { accountState, type StateLine } from '#libs/ports/read-model/account-state.js'
import { loggedEvent, type LoggedEvent } from '#libs/ports/read-model/views.js'
import { EXIT, Failure } from '../failure.js'
import { REBUILT_TOPICS, ScratchViews, withoutMail } from '../scratch-views.js'
import {
  CHECKPOINT_FILE,
  ExportFiles,
  knownRecords,
  leavesOf,
  MAX_NOTE_BYTES,
  READ_FLAGS,
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

const EVENTS_AT_ONCE = 200

/**
 * Computes the state of the account from the first leaves of an export, by default all, in a scratch store. Yields each line
 * of the state. Does not verify the export, except that the records are those of the leaves.
 */
export async function* replayExport(folder: string, wanted: number | null): AsyncGenerator<Buffer, Replay> {
  const files = new ExportFiles(folder, (what, why) => {
    throw new Failure(EXIT.differs, `${what}: ${why}`)
  })
  const exported = await sizeOf(files)
  const size = wanted ?? exported
  if (size > exported) throw new Failure(EXIT.usage, `the export has ${exported} leaves`)
  await using scratch = await ScratchViews.open(1)
  const { accountId, missing } = await project(scratch, files, { exported, size })
  const replay = { size, without_record: missing, inboxes: 0, ended_inboxes: 0, messages: 0 }
  const digest = createHash('sha256')
  const lines = accountId === null ? [] : accountState(scratch.model, accountId)
  for await (const line of lines) {
    count(replay, line)
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    digest.update(bytes)
    yield bytes
  }
  return { ...replay, digest: digest.digest('hex') }
}

function count(replay: Omit<Replay, 'digest'>, { id, state }: StateLine): void {
  if (id.startsWith('msg_')) replay.messages += 1
  else if (id.startsWith('inb_')) replay[state === 'active' ? 'inboxes' : 'ended_inboxes'] += 1
}

/** Of the export's checkpoint. */
async function sizeOf(files: ExportFiles): Promise<number> {
  const note = await files.read(CHECKPOINT_FILE, MAX_NOTE_BYTES)
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
  const records = recordsOf(files, exported)
  let index = 0
  for await (const bytes of leavesOf(files, exported)) {
    if (index === size) break
    const { value: record = null } = await records.next()
    const leaf = parseLeaf(bytes)
    if (leaf === null) throw new Failure(EXIT.differs, `leaf ${index}: it is not a leaf in canonical JSON`)
    if (record === null) missing += 1
    else if (leaf.topic === 'inbox-events') {
      const { event, ...recorded } = decode(inboxEventCodec, record, { ...leaf, index })
      accountId = recorded.accountId
      inboxEvents.push(loggedEvent(index, { ...recorded, event: withoutMail(event) }))
      if (inboxEvents.length === EVENTS_AT_ONCE) await flush(index + 1)
    } else if (leaf.topic === 'account-events') {
      const recorded = decode(accountEventCodec, record, { ...leaf, index })
      accountId = recorded.accountId
      await scratch.projectAccounts([loggedEvent(index, recorded)], index + 1)
    }
    index += 1
  }
  await flush(index)
  return { accountId, missing }
}

/** Throws Failure if it is not the record of the leaf. */
function decode<Event extends { type: string }>(
  codec: EventCodec<Event>,
  record: string,
  { index, recordSha256 }: Leaf & { index: number },
): Recorded<Event> {
  const wrong = (why: string) => new Failure(EXIT.differs, `record of leaf ${index}: ${why}`)
  if (hash('sha256', record) !== recordSha256) throw wrong('it is not the one that was logged')
  const found = codec.decode(readRecord(record))
  if (found.kind === 'newer') throw wrong(`a newer version of Mayfly wrote its event, ${found.type}`)
  if (found.kind === 'undecodable') throw wrong(found.reason)
  return found.recorded
}

/** The records of leaves, in turn, as they are hashed; null for one that the event log no longer had. */
async function* recordsOf(files: ExportFiles, size: number): AsyncGenerator<string | null, undefined> {
  const known = knownRecords(await files.names(RECORDS))
  for (let from = 0; from < size;) {
    const file = known.get(from)
    if (file === undefined)
      throw new Failure(EXIT.differs, `${RECORDS}: there are no records of the leaves from ${from}`)
    yield* linesOf(files.folder, file)
    from = file.to
  }
}

async function* linesOf(folder: string, { path, from, to }: RecordsFile): AsyncGenerator<string | null> {
  await using file = await open(join(folder, path), READ_FLAGS)
  let lines = 0
  for await (const line of file.readLines()) {
    lines += 1
    yield line === '' ? null : line
  }
  if (lines !== to - from) throw new Failure(EXIT.differs, `${path}: it does not have ${to - from} lines`)
}
