import { mkdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { LmdbKeyVault } from '#libs/engines/embedded/key-vault/lmdb-key-vault.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import { webhookSecrets } from '#libs/ports/key-vault/webhook-secrets.js'
import { KEPT_MS, LEASE_MS } from '#libs/ports/idempotency/idempotency-store.js'
import { LmdbIdempotencyStore } from '#libs/engines/embedded/idempotency/lmdb-idempotency-store.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import { FreeDisk } from '#libs/engines/embedded/event-log/free-disk.js'
import { LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { GatheredKeyUse } from '#libs/ports/key-use/key-use.js'
import { LmdbKeyUseStore } from '#libs/engines/embedded/key-use/lmdb-key-use-store.js'
import { memoryRateLimits } from '#libs/engines/embedded/rate-limit/memory-rate-limits.js'
import { openLmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-read-model.js'
import { InProcessSignals } from '#libs/engines/embedded/signals/in-process-signals.js'
import { openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import { messageOf } from '#libs/runtime/errors.js'
import { type Engine, type EngineOptions, retentionMs } from '#libs/engines/engine.js'
import { DataDirError, masterKeyText, takeDataDir } from './data-dir.js'

/** Partitions of inbox-events: enough that one slow mail holds back few inboxes, few enough for large batches. */
const PARTITIONS = 8
type DataFile = readonly [folder: string, file: string]
const LOG_FILE: DataFile = ['event-log', 'log.mdb']
const KEYS_FILE: DataFile = ['keys', 'keys.mdb']
const VIEWS_FILE: DataFile = ['read-model', 'views.mdb']
const REQUESTS_FILE: DataFile = ['idempotency', 'requests.mdb']
const KEY_USE_FILE: DataFile = ['key-use', 'key-use.mdb']

const USAGE_FOLDER = 'usage'

const REWRITE_KEYS_WITHIN_MS = 3_600_000

/** Every port in this process, on files in the data folder. Throws DataDirError if they can't be used. */
export async function openEmbeddedEngine({ settings, now, onError }: EngineOptions): Promise<Engine> {
  const dataDir = takeDataDir(settings.dataDir)
  // Closes in reverse order, each of them whatever became of the others.
  const opened = new AsyncDisposableStack()
  opened.defer(() => dataDir.release())
  const close = () => opened.disposeAsync()
  try {
    const hasKeys = isThere(join(dataDir.path, ...KEYS_FILE))
    if (hasKeys) refuseLostLog(dataDir.path)
    const masterKeys = MasterKeys.parse(masterKeyText(dataDir.path, settings.masterKey, hasKeys))
    if (masterKeys === null) throw new DataDirError('the master key is not 32 bytes in base64')
    const log = await openLog(dataDir.path, now, (error) => onError(error, 'removing old events'))
    opened.defer(() => log.close())
    if (!hasKeys) await refuseLostKeys(log, dataDir.path)
    const vault = await orDataDirError(() =>
      LmdbKeyVault.open({
        path: fileIn(dataDir.path, KEYS_FILE),
        masterKeys,
        rewriteWithinMs: REWRITE_KEYS_WITHIN_MS,
        now,
        onRewriteError: (error) => onError(error, 'rewriting the key file'),
      }),
    )
    opened.defer(() => vault.close())
    const readModel = await openOrRemove(
      fileIn(dataDir.path, VIEWS_FILE),
      (path) => openLmdbReadModel(path),
      (error) => onError(error, 'opening the views'),
    )
    opened.defer(() => readModel.close())
    const keyUseStore = await openOrRemove(
      fileIn(dataDir.path, KEY_USE_FILE),
      (path) => LmdbKeyUseStore.open(path),
      (error) => onError(error, 'opening when keys were used'),
    )
    opened.defer(() => keyUseStore.close())
    const keyUse = new GatheredKeyUse(keyUseStore, (error) => onError(error, 'storing when keys were used'))
    opened.defer(() => keyUse.close())
    const { store: projections, queries: inboxes, accounts, webhooks, deliveries, replays } = readModel
    const secrets = webhookSecrets(masterKeys)
    const signals = new InProcessSignals()
    opened.defer(() => signals.close())
    const limits = memoryRateLimits()
    const idempotency = await openOrRemove(
      fileIn(dataDir.path, REQUESTS_FILE),
      (path) =>
        LmdbIdempotencyStore.open({
          path,
          leaseMs: LEASE_MS,
          keptMs: KEPT_MS,
          now,
          onPruneError: (error) => onError(error, 'removing old answers'),
        }),
      (error) => onError(error, 'opening the answers to repeated requests'),
    )
    opened.defer(() => idempotency.close())
    // Not removed where it can't be opened: it has figures of events that the log has long lost.
    const usage = settings.countsUsage
      ? await orDataDirError(() => openChdbUsage(join(dataDir.path, USAGE_FOLDER)))
      : null
    opened.defer(() => usage?.close())
    return {
      log,
      vault,
      secrets,
      projections,
      inboxes,
      accounts,
      webhooks,
      deliveries,
      replays,
      keyUse,
      signals,
      limits,
      idempotency,
      usage,
      disk: new FreeDisk(dataDir.path),
      close,
    }
  } catch (error) {
    await close().catch((fault: unknown) => onError(fault, 'closing'))
    throw error
  }
}

/**
 * Opens the event log of a data folder that no process uses, and nothing else. Disposing closes the log and
 * releases the folder.
 * Rejects with DataDirError if the folder is in use, or holds no event log.
 */
export async function openLogForRecovery(
  given: string,
  now: () => Date,
): Promise<{ log: EventLog } & AsyncDisposable> {
  const file = join(resolve(given), ...LOG_FILE)
  // Checked first: nothing is made in a folder that was named by mistake.
  if (!isThere(file)) throw new DataDirError(`${given} is not a data folder of Mayfly: there is no ${file}`)
  const opened = new AsyncDisposableStack()
  try {
    const dataDir = takeDataDir(given)
    opened.defer(() => dataDir.release())
    const log = await openLog(dataDir.path, now, () => undefined)
    opened.defer(() => log.close())
    return { log, [Symbol.asyncDispose]: () => opened.disposeAsync() }
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

function openLog(
  dataDir: string,
  now: () => Date,
  onPruneError: (error: unknown) => void,
): Promise<LmdbEventLog> {
  const path = fileIn(dataDir, LOG_FILE)
  return orDataDirError(() =>
    LmdbEventLog.open({ path, partitions: PARTITIONS, retentionMs, now, onPruneError }),
  )
}

/** An event log is made before any key: keys without one mean that it was lost, not that all begins anew. */
function refuseLostLog(dataDir: string): void {
  const log = join(dataDir, ...LOG_FILE)
  if (isThere(log)) return
  throw new DataDirError(
    `the event log ${log} is missing or empty, though there are keys of inboxes in ${join(dataDir, ...KEYS_FILE)}: ` +
      `put a copy of it back, or set MAYFLY_DATA_DIR to another folder to begin anew`,
  )
}

/** Without its key no inbox can be read again: that must not come to light mail by mail. */
async function refuseLostKeys(log: LmdbEventLog, dataDir: string): Promise<void> {
  const { partitions } = await log.topology('inbox-events')
  if (partitions.every(({ end }) => end === 0)) return
  throw new DataDirError(
    `the keys of inboxes ${join(dataDir, ...KEYS_FILE)} are missing, without which no mail on the event log opens: ` +
      `put a copy of them back, or set MAYFLY_DATA_DIR to another folder to begin anew`,
  )
}

function isThere(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0
}

/** Opening fails for what is on the disk, or what is configured for it: an operator's affair. */
async function orDataDirError<Opened>(open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (cause) {
    throw new DataDirError(messageOf(cause), { cause })
  }
}

/** What can't be opened is removed: views are rebuilt from the log, and without the rest nothing is wrong. */
async function openOrRemove<Opened>(
  path: string,
  open: (path: string) => Opened | Promise<Opened>,
  onFault: (error: unknown) => void,
): Promise<Opened> {
  try {
    return await open(path)
  } catch (error) {
    onFault(error)
    for (const file of [path, `${path}-lock`]) rmSync(file, { force: true })
    return open(path)
  }
}

function fileIn(dataDir: string, [folder, file]: DataFile): string {
  mkdirSync(join(dataDir, folder), { recursive: true, mode: 0o700 })
  return join(dataDir, folder, file)
}
