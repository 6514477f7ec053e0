import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packSource, sealMail } from '#libs/ports/key-vault/sealing.js'
import { openLmdbKeyVault, type LmdbKeyVault } from '#libs/engines/embedded/key-vault/lmdb-key-vault.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import type { LogRecord } from '#libs/ports/event-log/event-log.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'
import { inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { openLmdbEventLog, type LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { anyEnvelope } from '#test/harness/envelope.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { commit, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { brand, type InboxId } from '#libs/domain/ids/typeid.js'

/* The stores of a data folder that no process has open, opened by the test itself. */

export const PARTITIONS = 8

export function openLog(
  dataDir: string,
  keptMs: (topic: TopicName) => number | null = () => null,
): Promise<LmdbEventLog> {
  return openLmdbEventLog({
    path: logPath(dataDir),
    partitions: PARTITIONS,
    retentionMs: keptMs,
    now: () => new Date(),
    onPruneError: rethrow,
  })
}

export async function openVault(dataDir: string): Promise<LmdbKeyVault> {
  const masterKeys = MasterKeys.parse(await readFile(join(dataDir, 'master.key'), 'utf8'))
  if (masterKeys === null) throw new Error('the folder has no master key')
  return openLmdbKeyVault({
    path: join(dataDir, 'keys', 'keys.mdb'),
    masterKeys,
    now: () => new Date(),
    onRewriteError: rethrow,
  })
}

export function logPath(dataDir: string): string {
  return join(dataDir, 'event-log', 'log.mdb')
}

/** The records that SMTP would write: one for each source, to the inboxes in turn. */
export async function makeMailRecords(
  dataDir: string,
  inboxIds: readonly string[],
  sources: readonly string[],
): Promise<LogRecord[]> {
  const vault = await openVault(dataDir)
  const records: LogRecord[] = []
  for (const [index, source] of sources.entries()) {
    const inboxId = brand('inb', inboxIds[index % inboxIds.length] ?? '')
    const lookup = await vault.find(inboxId)
    if (lookup.state !== 'known') throw new Error(`the key of ${inboxId} is ${lookup.state}`)
    const messageId = mintId('msg')
    const packed = await packSource(Buffer.from(source))
    const sealed = sealMail(lookup.key, inboxId, messageId, anyEnvelope, packed)
    const digest = createHash('sha256').update(sealed).digest('hex')
    const receivedAt = new Date()
    records.push(
      recordOf({
        type: 'MessageReceived',
        inboxId,
        messageId,
        receivedAt,
        size: packed.size,
        digest,
        sealed,
        duplicateOf: null,
        fingerprint: null,
        inbox: null,
      }),
    )
  }
  await vault.close()
  return records
}

/** An event as a record of the log. */
export function recordOf(event: InboxEvent): LogRecord {
  return inboxEventCodec.encode({
    id: mintId('evt'),
    time: new Date(),
    source: '/mayfly/smtp',
    accountId: mintId('acc'),
    environment: 'development',
    keyId: null,
    event,
  })
}

/** The events of one inbox on the log, in order. */
export async function eventsOf(dataDir: string, inboxId: InboxId): Promise<InboxEvent[]> {
  const log = await openLog(dataDir)
  const events: InboxEvent[] = []
  const { partitions } = await log.topology('inbox-events')
  for (const range of partitions) {
    for await (const records of log.read(range)) {
      for (const record of records) {
        const decoded = record.key === inboxId ? inboxEventCodec.decode(record) : null
        if (decoded?.kind === 'event') events.push(decoded.recorded.event)
      }
    }
  }
  await log.close()
  return events
}

/** Changes a byte in the middle of the sealed mail that an inbox received last, in the file of the log. */
export async function damageNewestMail(dataDir: string, inboxId: InboxId): Promise<void> {
  const mail = (await eventsOf(dataDir, inboxId)).findLast((event) => event.type === 'MessageReceived')
  if (mail === undefined) throw new Error(`the log has no mail to ${inboxId}`)
  const file = await readFile(logPath(dataDir))
  const at = file.indexOf(mail.sealed.subarray(mail.sealed.length >> 1))
  if (at === -1) throw new Error('the file does not have the mail in one piece')
  file.writeUInt8(file.readUInt8(at) ^ 1, at)
  await writeFile(logPath(dataDir), file)
}

/** Removes the newest records of each partition, as a crash loses unsynced ones. Returns the number of removed records. */
export async function removeNewestRecords(dataDir: string, recordsPerPartition: number): Promise<number> {
  const root = openLmdbFile<unknown, string>({
    path: logPath(dataDir),
    syncMode: 'before-visible',
    maxDbs: 16,
  })
  const rows = root.openDB<unknown, [partition: number, offset: number]>({ name: 'inbox-events' })
  const newest = Array.from({ length: PARTITIONS }, (_, partition) =>
    [...rows.getKeys({ start: [partition, 0], end: [partition + 1, 0] })].slice(-recordsPerPartition),
  ).flat()
  await commit(root, () => {
    for (const key of newest) rows.removeSync(key)
  })
  await root.close()
  return newest.length
}

function rethrow(error: unknown): never {
  throw error
}
