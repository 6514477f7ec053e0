import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packSource, sealMail } from '#libs/ports/key-vault/content.js'
import { LmdbKeyVault } from '#libs/engines/embedded/key-vault/lmdb-key-vault.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import type { LogRecord } from '#libs/ports/event-log/event-log.js'
import { inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { commit, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { brand, type InboxId } from '#libs/domain/ids/typeid.js'

/*
 * The files of a data folder that no process holds, opened by the test itself.
 */

export const PARTITIONS = 8

export function openLog(dataDir: string): Promise<LmdbEventLog> {
  return LmdbEventLog.open({
    path: logPath(dataDir),
    partitions: PARTITIONS,
    retentionMs: () => null,
    now: () => new Date(),
    onPruneError: rethrow,
  })
}

export async function openVault(dataDir: string): Promise<LmdbKeyVault> {
  const masterKeys = MasterKeys.parse(await readFile(join(dataDir, 'master.key'), 'utf8'))
  if (masterKeys === null) throw new Error('the folder has no master key')
  return LmdbKeyVault.open({
    path: join(dataDir, 'keys', 'keys.mdb'),
    masterKeys,
    rewriteWithinMs: 3_600_000,
    now: () => new Date(),
    onRewriteError: rethrow,
  })
}

export function logPath(dataDir: string): string {
  return join(dataDir, 'event-log', 'log.mdb')
}

/** Records as SMTP would have written them: one for each source, in turn to each inbox. */
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
    const envelope = {
      mailFrom: 'a@example.com',
      rcptTo: 'b@mayfly.test',
      helo: 'tests',
      remoteAddress: '::1',
      tls: null,
    }
    const packed = await packSource(Buffer.from(source))
    const sealed = sealMail(lookup.key, inboxId, messageId, envelope, packed)
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
        inbox: null,
      }),
    )
  }
  await vault.close()
  return records
}

/** An event as the roles record it. */
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

/** What the log holds of one inbox, in order. */
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

/** Takes the last records of each partition away, as a crash does with what was not flushed. Returns how many went. */
export async function cutTail(dataDir: string, recordsPerPartition: number): Promise<number> {
  const root = openLmdbFile<unknown, string>({
    path: logPath(dataDir),
    syncMode: 'before-visible',
    maxDbs: 16,
  })
  const rows = root.openDB<unknown, [partition: number, offset: number]>({ name: 'inbox-events' })
  const tails = Array.from({ length: PARTITIONS }, (_, partition) =>
    [...rows.getKeys({ start: [partition, 0], end: [partition + 1, 0] })].slice(-recordsPerPartition),
  ).flat()
  await commit(root, () => {
    for (const key of tails) rows.removeSync(key)
  })
  await root.close()
  return tails.length
}

function rethrow(error: unknown): never {
  throw error
}
