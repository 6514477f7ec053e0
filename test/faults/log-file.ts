import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packSource, sealMail } from '#libs/erasure/content.js'
import { LmdbKeyVault } from '#libs/erasure/lmdb/lmdb-key-vault.js'
import { MasterKeys } from '#libs/erasure/master-key.js'
import type { LogRecord } from '#libs/event-log/event-log.js'
import { inboxEventCodec } from '#libs/event-log/inbox-events.js'
import { LmdbEventLog } from '#libs/event-log/lmdb/lmdb-event-log.js'
import { commit, openLmdbFile } from '#libs/lmdb-file/lmdb-file.js'
import { mintId } from '#libs/typeid/mint.js'
import { brand, type InboxId, type MessageId } from '#libs/typeid/typeid.js'

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
    const envelope = { mailFrom: 'a@example.com', rcptTo: 'b@mayfly.test', helo: 'tests', remoteAddress: '::1', tls: null }
    const packed = await packSource(Buffer.from(source))
    const sealed = sealMail(lookup.key, inboxId, messageId, envelope, packed)
    records.push(recordOf(inboxId, messageId, packed.size, sealed))
  }
  await vault.close()
  return records
}

function recordOf(inboxId: InboxId, messageId: MessageId, size: number, sealed: Buffer): LogRecord {
  const digest = createHash('sha256').update(sealed).digest('hex')
  return inboxEventCodec.encode({
    id: mintId('evt'),
    time: new Date(),
    source: '/mayfly/smtp',
    accountId: mintId('acc'),
    environment: 'development',
    keyId: null,
    event: { type: 'MessageReceived', inboxId, messageId, receivedAt: new Date(), size, digest, sealed },
  })
}

/** Takes the last records of each partition away, as a crash does with what was not flushed. Returns how many went. */
export async function cutTail(dataDir: string, recordsPerPartition: number): Promise<number> {
  const root = openLmdbFile<unknown, string>({ path: logPath(dataDir), isSynced: 'before-seen', maxDbs: 16 })
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
