import { createHash, randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { FIRST_PLAN, prefixOf, SCOPES, generateSecret } from '#libs/domain/account/access.js'
import { isValidSecret } from '#libs/domain/account/account.js'
import type { AccountEvent, ApiKeyIssued } from '#libs/domain/account/events.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { idFromBytes, type AccountId, type KeyId } from '#libs/domain/ids/typeid.js'
import type { Engine } from '#libs/engines/engine.js'
import { accountEventCodec, Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { LogReader } from '#libs/ports/event-log/event-log.js'
import { hashSecret } from '#libs/ports/key-vault/master-key.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { StartError } from '#libs/runtime/errors.js'

export interface FirstKeyOptions {
  engine: Pick<Engine, 'log' | 'inboxes' | 'accounts' | 'signals'>
  settings: Pick<Settings, 'bootstrapApiKey'>
  now: () => Date
  logger: Pick<Logger, 'info' | 'warn'>
}

/** The first API key: the secret if it was created at this start. */
export type FirstKey = { secret: string } | 'created-earlier' | 'configured'

const ENVIRONMENT = 'development'
const REPORT_WAIT_AFTER_MS = 5_000
const VISIBLE_WITHIN_MS = 600_000

/**
 * Adds the configured key to the first account on the log, if the key is not known yet. Opens an account if there is none.
 * All ids are derived from the secret, so that processes that start at once write the same events. Resolves once the key
 * can be used.
 */
export async function ensureConfiguredKey(options: FirstKeyOptions): Promise<void> {
  const { engine, settings, now, logger } = options
  const { bootstrapApiKey } = settings
  if (bootstrapApiKey === null) return
  await waitForAccountViews(options)
  const secretHash = hashSecret(bootstrapApiKey)
  const known = await engine.accounts.keyByHash(secretHash)
  if (known === null) await issueVisibly(bootstrapApiKey, options)
  else if (!isValidSecret(known.key, secretHash, now())) {
    logger.warn({ keyId: known.key.id }, 'MAYFLY_BOOTSTRAP_API_KEY was revoked or replaced: set another one')
  }
}

/**
 * Creates the first key if none is configured and none was ever issued. `announce` must show the secret to the operator:
 * only its hash is stored, so it can't be shown again. Resolves once the key can be used.
 */
export async function makeFirstKey(
  options: FirstKeyOptions & { announce: (secret: string) => void },
): Promise<FirstKey> {
  const { engine, settings, announce } = options
  if (settings.bootstrapApiKey !== null) return 'configured'
  await waitForAccountViews(options)
  if (await hasKey(engine.log)) return 'created-earlier'
  const secret = generateSecret(ENVIRONMENT, randomBytes)
  // Shown before it is stored: if the process is killed in between, the next start creates and shows another key.
  announce(secret)
  await issueVisibly(secret, options)
  return { secret }
}

/**
 * Adds a key with every scope to the first account of a data folder that no process uses. Resolves with its secret and
 * account once it is durable. Rejects with DataDirError if the folder is in use or has no event log, and with StartError
 * if it has no account.
 */
export async function recoverKey(
  dataDir: string,
  now: () => Date,
): Promise<{ secret: string; keyId: KeyId; accountId: AccountId; environment: string }> {
  // Imported here, because a process of the distributed engine does not need it.
  const { openLogForRecovery } = await import('#libs/engines/embedded/embedded-engine.js')
  await using opened = await openLogForRecovery(dataDir, now)
  const accountId = await firstAccount(opened.log)
  if (accountId === null) {
    throw new StartError(
      `${dataDir} has no account yet: start Mayfly, which creates and prints the first key`,
    )
  }
  const secret = generateSecret(ENVIRONMENT, randomBytes)
  const keyId = mintId('key')
  const event = keyIssued({ accountId, keyId, name: 'recovered' }, secret, now())
  const recorder = new Recorder(opened.log, '/mayfly/cli', now)
  await recorder.record(event, { accountId, environment: ENVIRONMENT, keyId: null })
  return { secret, keyId, accountId, environment: ENVIRONMENT }
}

/** The account that was opened first; null if there is none. */
export async function firstAccount(log: LogReader): Promise<AccountId | null> {
  for await (const event of accountEvents(log)) if (event.type === 'AccountOpened') return event.accountId
  return null
}

async function waitForAccountViews({ engine, logger }: FirstKeyOptions): Promise<void> {
  const { partitions } = await engine.log.topology('account-events')
  const views = new ConsistentViews(engine.log, engine.inboxes, engine.signals)
  for (const { topic, partition, end } of partitions) {
    // Also wait if the log is empty: views of a previous log may still exist.
    const last = { topic, partition, offset: end - 1 }
    if (await views.isVisibleWithin(last, REPORT_WAIT_AFTER_MS)) continue
    logger.info('waiting for a projector to update the views of accounts')
    if (await views.isVisibleWithin(last, VISIBLE_WITHIN_MS)) continue
    const minutes = VISIBLE_WITHIN_MS / 60_000
    throw new StartError(
      `the views of accounts have not caught up with the log after ${minutes} minutes: check that a projector is running`,
    )
  }
}

/** Adds a key to the first account. Opens an account if there is none. Resolves once the key can be used. */
async function issueVisibly(secret: string, { engine, now }: FirstKeyOptions): Promise<void> {
  const keyId = idFromBytes('key', digest(`key of ${secret}`))
  // Without a known key, the account that was opened first is used.
  const existing = await firstAccount(engine.log)
  const accountId = existing ?? idFromBytes('acc', digest(`account of ${secret}`))
  const attribution = { accountId, environment: ENVIRONMENT, keyId }
  const recorder = new Recorder(engine.log, '/mayfly/api', now)
  if (existing === null) {
    const account = { accountId, name: 'bootstrap', plan: FIRST_PLAN, limits: null }
    await recorder.record({ type: 'AccountOpened', ...account, openedAt: now() }, attribution)
  }
  const event = keyIssued({ accountId, keyId, name: 'bootstrap' }, secret, now())
  const position = await recorder.record(event, attribution)
  const views = new ConsistentViews(engine.log, engine.inboxes, engine.signals)
  if (await views.isVisibleWithin(position, VISIBLE_WITHIN_MS)) return
  throw new Error('the views do not show the first API key')
}

async function hasKey(log: LogReader): Promise<boolean> {
  for await (const { type } of accountEvents(log)) if (type === 'ApiKeyIssued') return true
  return false
}

/** The events of all accounts, oldest first. */
async function* accountEvents(log: LogReader): AsyncGenerator<AccountEvent> {
  const { partitions } = await log.topology('account-events')
  for (const range of partitions) {
    for await (const records of log.read(range)) {
      for (const decoded of records.map((record) => accountEventCodec.decode(record))) {
        if (decoded.kind === 'newer') {
          throw new StartError('the log has account events of a newer version of Mayfly: run that version')
        }
        if (decoded.kind === 'event') yield decoded.recorded.event
      }
    }
  }
}

function keyIssued(
  key: Pick<ApiKeyIssued, 'accountId' | 'keyId' | 'name'>,
  secret: string,
  issuedAt: Date,
): ApiKeyIssued {
  return {
    type: 'ApiKeyIssued',
    ...key,
    environment: ENVIRONMENT,
    scopes: SCOPES,
    rateLimit: null,
    secretHash: hashSecret(secret),
    prefix: prefixOf(secret),
    expiresAt: null,
    owner: 'service',
    createdBy: null,
    issuedAt,
  }
}

function digest(text: string): Uint8Array {
  return createHash('sha256').update(text).digest().subarray(0, 16)
}
