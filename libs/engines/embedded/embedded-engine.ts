import { rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import { openLmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { openLmdbIdempotency } from '#libs/engines/embedded/idempotency/lmdb-idempotency-store.js'
import { openLmdbKeyUse } from '#libs/engines/embedded/key-use/lmdb-key-use-store.js'
import { openLmdbKeyVault } from '#libs/engines/embedded/key-vault/lmdb-key-vault.js'
import { FreeDisk } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { DamagedFileError } from '#libs/engines/embedded/lmdb-file/page-check.js'
import { memoryRateLimits } from '#libs/ports/rate-limit/memory-rate-limits.js'
import { openLmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
import { type Engine, type EngineOptions, retentionMs } from '#libs/engines/engine.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import { KeyUse } from '#libs/ports/key-use/key-use.js'
import { InProcessSignals } from '#libs/ports/signals/signals.js'
import type { UsageStore } from '#libs/ports/usage/usage-store.js'
import { messageOf } from '#libs/runtime/errors.js'
import { makeFolder } from '#libs/runtime/folder.js'
import { DataDirError, lockDataDir, masterKeysOf } from './data-dir.js'

/** Partitions of inbox-events: enough that a slow mail delays few inboxes, and few enough for large batches. */
const PARTITIONS = 8
const LOG_FILE = join('event-log', 'log.mdb')
const KEYS_FILE = join('keys', 'keys.mdb')
const VIEWS_FILE = join('read-model', 'views.mdb')
const REQUESTS_FILE = join('idempotency', 'requests.mdb')
const KEY_USE_FILE = join('key-use', 'key-use.mdb')
const USAGE_FOLDER = 'usage'

/** Opens every port on files in the data folder. Rejects with DataDirError if the folder or a file can't be used. */
export async function openEmbeddedEngine({ settings, now, onError }: EngineOptions): Promise<Engine> {
  const { path, release } = lockDataDir(settings.dataDir)
  // Closes everything in reverse order, even if closing one of them fails.
  const opened = new AsyncDisposableStack()
  opened.defer(release)
  const closeLater = async <Opened extends { close(): Promise<void> } | null>(opening: Promise<Opened>) =>
    opened.adopt(await opening, (each) => each?.close())
  const onErrorDuring = (during: string, outcome?: string) => (error: unknown) =>
    onError(error, during, outcome)
  const close = () => opened.disposeAsync()
  const openOrReplace = <Opened extends { close(): Promise<void> }>(
    file: string,
    open: (path: string) => Opened | Promise<Opened>,
    [during, outcome]: [during: string, outcome: string],
  ) => closeLater(openOrRemove(fileIn(path, file), open, onErrorDuring(during, outcome)))
  try {
    const hasKeys = hasContent(join(path, KEYS_FILE))
    if (hasKeys) requireLog(path)
    const masterKeys = masterKeysOf(path, settings.masterKey, hasKeys)
    const log = await closeLater(openLog(path, now, onErrorDuring('removing old events')))
    if (!hasKeys) await requireEmptyLog(log, path)
    const keys = { path: fileIn(path, KEYS_FILE), masterKeys, now }
    const onRewriteError = onErrorDuring('rewriting the key file')
    const vault = await closeLater(
      orDataDirError(() => openLmdbKeyVault({ ...keys, onRewriteError }), RESTORE),
    )
    const { store, queries, ...views } = await openOrReplace(
      VIEWS_FILE,
      (file) => openLmdbReadModel(file, PARTITIONS, { log }),
      ['opening the views', 'rebuilding them from the log'],
    )
    const keyUseStore = await openOrReplace(KEY_USE_FILE, openLmdbKeyUse, [
      'opening the times of key use',
      'starting without them',
    ])
    const keyUse = new KeyUse(keyUseStore, onErrorDuring('storing the times of key use'))
    opened.defer(() => keyUse.close())
    const signals = new InProcessSignals()
    opened.defer(() => signals.close())
    const onPruneError = onErrorDuring('removing old responses')
    const idempotency = await openOrReplace(
      REQUESTS_FILE,
      (file) => openLmdbIdempotency({ path: file, now, onPruneError }),
      ['opening the records of requests', 'starting without them'],
    )
    const usageFolder = join(path, USAGE_FOLDER)
    const usage = settings.countsUsage ? await closeLater(openUsage(usageFolder, onError)) : null
    return {
      ...views,
      log,
      vault,
      secrets: masterKeys,
      projections: store,
      inboxes: queries,
      keyUse,
      signals,
      limits: memoryRateLimits(),
      idempotency,
      usage,
      disk: new FreeDisk(path),
      close,
    }
  } catch (error) {
    await close().catch(onErrorDuring('closing'))
    throw error
  }
}

/**
 * Opens only the event log of a data folder that no process uses. Disposing closes the log and unlocks the folder.
 * Rejects with DataDirError if the folder is in use or has no event log.
 */
export async function openLogForRecovery(
  folder: string,
  now: () => Date,
): Promise<{ log: EventLog } & AsyncDisposable> {
  const file = join(resolve(folder), LOG_FILE)
  // Checked first, so that nothing is created in a folder that was named by mistake.
  if (!hasContent(file))
    throw new DataDirError(`${folder} is not a data folder of Mayfly: there is no ${file}`)
  await using opened = new AsyncDisposableStack()
  const { path, release } = lockDataDir(folder)
  opened.defer(release)
  const log = await openLog(path, now, () => undefined)
  opened.defer(() => log.close())
  const kept = opened.move()
  return { log, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/**
 * Opens the event log and the views of a data folder that no process uses, and changes neither. Rejects with DataDirError
 * as `openLogForRecovery` does, and if the views are missing, damaged or of another version.
 */
export async function openForComparison(
  folder: string,
  now: () => Date,
): Promise<{ log: EventLog; model: ReadModel } & AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const { log } = opened.use(await openLogForRecovery(folder, now))
  const file = join(resolve(folder), VIEWS_FILE)
  if (!hasContent(file)) throw new DataDirError(`there are no views: ${file} is missing or empty`)
  const open = () => openLmdbReadModel(file, PARTITIONS, { log, keepsForm: true })
  const model = opened.adopt(await orDataDirError(open, 'delete it to rebuild them'), (each) => each.close())
  const kept = opened.move()
  return { log, model, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

function openLog(
  dataDir: string,
  now: () => Date,
  onPruneError: (error: unknown) => void,
): Promise<EventLog> {
  const options = { path: fileIn(dataDir, LOG_FILE), partitions: PARTITIONS, retentionMs, now, onPruneError }
  return orDataDirError(() => openLmdbEventLog(options), RESTORE)
}

/**
 * Null if the figures can't be read. They are not removed, because they may be of events that are no longer on the log.
 */
async function openUsage(folder: string, onError: EngineOptions['onError']): Promise<UsageStore | null> {
  try {
    return await openChdbUsage(folder)
  } catch (error) {
    onError(
      error,
      'opening the usage figures',
      `usage is not counted; restore ${folder} from a copy that keeps its symbolic links, or remove it to count again ` +
        `what is still on the log, and start again`,
    )
    return null
  }
}

/** Throws if the event log is missing. It is created before any key, so if there are keys, it was lost. */
function requireLog(dataDir: string): void {
  const log = join(dataDir, LOG_FILE)
  if (hasContent(log)) return
  throw new DataDirError(
    `the event log ${log} is missing or empty, although there are keys in ${join(dataDir, KEYS_FILE)}: ` +
      `restore it from a copy, or set MAYFLY_DATA_DIR to another folder to start with an empty log`,
  )
}

/** Rejects if the log has inboxes: their keys are lost. The operator must learn that at the start, not mail by mail. */
async function requireEmptyLog(log: EventLog, dataDir: string): Promise<void> {
  const { partitions } = await log.topology('inbox-events')
  if (partitions.every(({ end }) => end === 0)) return
  throw new DataDirError(
    `the keys of inboxes ${join(dataDir, KEYS_FILE)} are missing, so no mail on the event log can be decrypted: ` +
      `restore them from a copy, or set MAYFLY_DATA_DIR to another folder to start with an empty log`,
  )
}

function hasContent(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0
}

const RESTORE =
  'restore event-log/, keys/ and master.key from a copy, or set MAYFLY_DATA_DIR to another folder to start with an empty log'

/**
 * Rejects with DataDirError if `open` fails: an operator must correct the files or the settings. `fix` says how if a file
 * is damaged.
 */
async function orDataDirError<Opened>(open: () => Promise<Opened>, fix: string): Promise<Opened> {
  try {
    return await open()
  } catch (cause) {
    const isDamaged = cause instanceof DamagedFileError
    throw new DataDirError(isDamaged ? `${cause.message}; ${fix}` : messageOf(cause), { cause })
  }
}

/** Removes a file that can't be opened, and creates it again. Views are rebuilt from the log, other data may be lost. */
async function openOrRemove<Opened>(
  path: string,
  open: (path: string) => Opened | Promise<Opened>,
  onFailure: (error: unknown) => void,
): Promise<Opened> {
  try {
    return await open(path)
  } catch (error) {
    onFailure(error)
    for (const file of [path, `${path}-lock`]) rmSync(file, { force: true })
    return open(path)
  }
}

function fileIn(dataDir: string, file: string): string {
  const path = join(dataDir, file)
  makeFolder(dirname(path))
  return path
}
