import { createHash, hash } from 'node:crypto'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseLeaf, readRecord, type Leaf } from '#libs/domain/audit/leaf.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { openLmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
import {
  accountEventCodec,
  inboxEventCodec,
  type EventCodec,
  type Recorded,
} from '#libs/ports/event-log/cloud-event.js'
import { accountState, type StateLine } from '#libs/ports/read-model/account-state.js'
import {
  accountSliceBefore,
  inboxRowsBefore,
  projectAccountEvent,
  projectInboxEvents,
} from '#libs/ports/read-model/projections.js'
import type { Change, ViewStore } from '#libs/ports/read-model/view-store.js'
import { loggedEvent, type LoggedEvent } from '#libs/ports/read-model/views.js'
import { EXIT, Failure } from '../failure.js'
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

/** The scratch store has one partition, in which the offset of an event is the index of its leaf. */
const LOG_ID = 'replay'
const EVENTS_AT_ONCE = 200

const TOPICS = ['inbox-events', 'account-events'] as const
type Topic = (typeof TOPICS)[number]

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
  const scratch = await mkdtemp(join(tmpdir(), 'mayfly-replay-'))
  try {
    const views = await openLmdbReadModel(join(scratch, 'views'), 1)
    try {
      const { accountId, environments, missing } = await rebuild(views.store, files, { exported, size })
      const replay = { size, without_record: missing, inboxes: 0, ended_inboxes: 0, messages: 0 }
      const digest = createHash('sha256')
      const lines = accountId === null ? [] : accountState(views, accountId, environments)
      for await (const line of lines) {
        count(replay, line)
        const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
        digest.update(bytes)
        yield bytes
      }
      return { ...replay, digest: digest.digest('hex') }
    } finally {
      await views.close()
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
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

/** Projects the events of the leaves into the views. */
async function rebuild(
  store: ViewStore,
  files: ExportFiles,
  { exported, size }: { exported: number; size: number },
) {
  const environments = new Set<string>()
  let accountId: AccountId | null = null
  let missing = 0
  const projection = new Projection(store)
  await projection.begin(size)
  const records = recordsOf(files, exported)
  let index = 0
  for await (const bytes of leavesOf(files, exported)) {
    if (index === size) break
    const { value: record = null } = await records.next()
    const leaf = parseLeaf(bytes)
    if (leaf === null) throw new Failure(EXIT.differs, `leaf ${index}: it is not a leaf in canonical JSON`)
    if (record === null) missing += 1
    else accountId = await projection.add(index, leaf, record)
    environments.add(leaf.environment)
    index += 1
  }
  await projection.flush()
  return { accountId, environments: [...environments], missing }
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

/** Projects events into a store, those of inboxes some at a time. */
class Projection {
  private readonly positions = { 'inbox-events': 0, 'account-events': 0 }
  private inboxEvents: LoggedEvent<InboxEvent>[] = []

  constructor(private readonly store: ViewStore) {}

  /** `end` is the number of leaves. */
  async begin(end: number): Promise<void> {
    for (const topic of TOPICS) await this.store.begin(LOG_ID, { topic, partition: 0, first: 0, end })
  }

  /** Resolves with the account of the event. */
  async add(offset: number, { topic, recordSha256 }: Leaf, record: string): Promise<AccountId> {
    const wrong = (why: string) => new Failure(EXIT.differs, `record of leaf ${offset}: ${why}`)
    if (hash('sha256', record) !== recordSha256) throw wrong('it is not the one that was logged')
    if (topic === 'inbox-events') {
      const { event, ...recorded } = decoded(inboxEventCodec, record, wrong)
      // Mail may be large, and is not read.
      const light = event.type === 'MessageReceived' ? { ...event, sealed: new Uint8Array(0) } : event
      this.inboxEvents.push(loggedEvent(offset, { ...recorded, event: light }))
      if (this.inboxEvents.length === EVENTS_AT_ONCE) await this.flush()
      return recorded.accountId
    }
    const recorded = decoded(accountEventCodec, record, wrong)
    const before = await accountSliceBefore(this.store, recorded.event)
    const changes = projectAccountEvent(before, loggedEvent(offset, recorded))
    await this.apply('account-events', offset + 1, changes)
    return recorded.accountId
  }

  /** Must be called after the last event. */
  async flush(): Promise<void> {
    const events = this.inboxEvents
    const last = events.at(-1)
    if (last === undefined) return
    this.inboxEvents = []
    const { changes } = projectInboxEvents(await inboxRowsBefore(this.store, events), events)
    await this.apply('inbox-events', last.offset + 1, changes)
  }

  private async apply(topic: Topic, to: number, changes: readonly Change[]): Promise<void> {
    const from = this.positions[topic]
    this.positions[topic] = to
    await this.store.apply({ topic, partition: 0, from, to, changes, contents: [] })
  }
}

function decoded<Event extends { type: string }>(
  codec: EventCodec<Event>,
  record: string,
  wrong: (why: string) => Failure,
): Recorded<Event> {
  const found = codec.decode(readRecord(record))
  if (found.kind === 'newer') throw wrong(`a newer version of Mayfly wrote its event, ${found.type}`)
  if (found.kind === 'undecodable') throw wrong(found.reason)
  return found.recorded
}
