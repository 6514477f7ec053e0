import { createHash, randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { drawSecret, prefixOf } from '#libs/account/api-key.js'
import { FIRST_PLAN } from '#libs/account/plan.js'
import { SCOPES } from '#libs/account/scope.js'
import type { Settings } from '#libs/config/settings.js'
import type { Engine } from '#libs/engine/engine.js'
import { StartError } from '#libs/engine/start-error.js'
import type { Recorder } from '#libs/event-log/recorder.js'
import { Watermark } from '#libs/read-model/watermark.js'
import { idFromBytes } from '#libs/typeid/typeid.js'
import { hashSecret } from './credentials.js'

export interface BootstrapOptions {
  engine: Pick<Engine, 'log' | 'inboxes' | 'accounts' | 'signals'>
  settings: Pick<Settings, 'bootstrapApiKey'>
  recorder: Recorder
  now: () => Date
  logger: Pick<Logger, 'info'>
  /** Shows a key that was made to whoever starts Mayfly: the only time that it is seen. */
  announce: (secret: string) => void
}

/** Where the first API key comes from: made at this start, at an earlier one, or configured. */
export type FirstKey = { made: string } | 'made-before' | 'configured'

const ENVIRONMENT = 'development'
const TOLD_AFTER_MS = 5_000
const PATIENCE_MS = 600_000

/**
 * Sees to it that the first key works: the configured one, else one made now where no account exists. Resolves
 * with where that key comes from. Ids are derived from the secret, so that several
 * instances that start at once write the same events, and a repeat changes nothing.
 */
export async function bootstrapAccount(options: BootstrapOptions): Promise<FirstKey> {
  const { engine, settings, announce } = options
  await accountsKnown(options)
  if (settings.bootstrapApiKey !== null) {
    const isKnown = (await engine.accounts.keyByHash(hashSecret(settings.bootstrapApiKey))) !== null
    if (!isKnown) await issue(settings.bootstrapApiKey, options)
    return 'configured'
  }
  if (await engine.accounts.hasAccounts()) return 'made-before'
  const secret = drawSecret(ENVIRONMENT, randomBytes)
  // Shown before it is made: killed in between, the next start makes and shows another.
  announce(secret)
  await issue(secret, options)
  return { made: secret }
}

/** Waits until the views have every account that the log holds. */
async function accountsKnown({ engine, logger }: BootstrapOptions): Promise<void> {
  const { partitions } = await engine.log.topology('account-events')
  const watermark = new Watermark(engine.inboxes, engine.signals)
  for (const { topic, partition, end } of partitions) {
    // Of an empty log too: until its views are begun, those of a log that it has replaced may still be there.
    const last = { topic, partition, offset: end - 1 }
    if (await watermark.hasPassed(last, TOLD_AFTER_MS)) continue
    logger.info('waiting for a projector to bring the views of accounts up to the log')
    if (await watermark.hasPassed(last, PATIENCE_MS)) continue
    const minutes = PATIENCE_MS / 60_000
    throw new StartError(
      `the views of accounts are not up to the log after ${minutes} minutes: does a projector run?`,
    )
  }
}

async function issue(secret: string, { engine, recorder, now }: BootstrapOptions): Promise<void> {
  const accountId = idFromBytes('acc', digest(`account of ${secret}`))
  const keyId = idFromBytes('key', digest(`key of ${secret}`))
  const attribution = { accountId, environment: ENVIRONMENT, keyId }
  const account = { accountId, name: 'bootstrap', plan: FIRST_PLAN, limits: null }
  await recorder.recordAccountEvent({ type: 'AccountOpened', ...account, openedAt: now() }, attribution)
  const position = await recorder.recordAccountEvent(
    {
      type: 'ApiKeyIssued',
      accountId,
      keyId,
      name: 'bootstrap',
      environment: ENVIRONMENT,
      scopes: SCOPES,
      rateLimit: null,
      secretHash: hashSecret(secret),
      prefix: prefixOf(secret),
      issuedAt: now(),
    },
    attribution,
  )
  const isVisible = await new Watermark(engine.inboxes, engine.signals).hasPassed(position, PATIENCE_MS)
  if (!isVisible) throw new Error('the first API key did not reach the views')
}

function digest(text: string): Uint8Array {
  return createHash('sha256').update(text).digest().subarray(0, 16)
}
