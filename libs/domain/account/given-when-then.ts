import { whenThen } from '#libs/domain/events/given-when-then.js'
import { idFromBytes, type AccountId, type KeyId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { WebhookEntry } from '#libs/domain/webhook/webhook.js'
import { evolve, type Account, type AccountSlice, type ApiKey } from './account.js'
import { decide, type AccountCommand } from './decide.js'
import type { AccountEvent, AccountOpened, ApiKeyIssued, ApiKeyRevoked, ApiKeyRotated } from './events.js'
import { BUILT_IN_PLANS, type Plan } from './plan.js'

/** An account with all its keys and webhooks, as a history leaves them. */
export interface AccountView {
  account: Account | null
  keys: ReadonlyMap<KeyId, ApiKey>
  webhooks: ReadonlyMap<WebhookId, WebhookEntry>
}

export const NOTHING: AccountView = { account: null, keys: new Map(), webhooks: new Map() }

export function replay(history: readonly AccountEvent[], before = NOTHING): AccountView {
  return history.reduce<AccountView>((view, event) => {
    const { account, key, webhook } = evolve(sliceFor(view, event), event)
    return {
      account,
      keys: key === null ? view.keys : new Map(view.keys).set(key.id, key),
      webhooks: 'webhookId' in event ? new Map(view.webhooks).set(event.webhookId, webhook) : view.webhooks,
    }
  }, before)
}

export function sliceFor(
  { account, keys, webhooks }: AccountView,
  what: AccountEvent | AccountCommand,
): AccountSlice {
  return {
    account,
    key: 'keyId' in what ? (keys.get(what.keyId) ?? null) : null,
    webhook: 'webhookId' in what ? (webhooks.get(what.webhookId) ?? null) : null,
  }
}

/** `given(opened, issued).when(rotate(at)).then([rotated(at)])` */
export function given(...history: AccountEvent[]) {
  const view = replay(history)
  return { ...whenThen((command: AccountCommand) => decide(sliceFor(view, command), command)), view }
}

export const ACCOUNT_ID: AccountId = idFromBytes('acc', Buffer.alloc(16, 1))
export const KEY_ID: KeyId = idFromBytes('key', Buffer.alloc(16, 2))

/** A moment of the example: days after the account was opened. */
export const day = (days: number): Date => new Date(Date.UTC(2026, 0, 1) + days * 86_400_000)
export const hash = (digit: string): string => digit.repeat(64)

export function planNamed(name: string): Plan {
  const plan = BUILT_IN_PLANS.get(name)
  if (plan === undefined) throw new Error(`no plan is called ${name}`)
  return plan
}

export const opened: AccountOpened = {
  type: 'AccountOpened',
  accountId: ACCOUNT_ID,
  name: 'Acme',
  plan: 'pro',
  limits: null,
  openedAt: day(0),
}

export const KEY_FACTS = {
  accountId: ACCOUNT_ID,
  keyId: KEY_ID,
  name: 'CI',
  environment: 'staging',
  scopes: ['inboxes'] as const,
  rateLimit: null,
  secretHash: hash('0'),
  prefix: 'mf_staging_k3v9',
}

export const issued: ApiKeyIssued = { type: 'ApiKeyIssued', ...KEY_FACTS, issuedAt: day(1) }

export function rotated(rotation: number, rotatedAt: Date, graceEndsAt: Date): ApiKeyRotated {
  return {
    type: 'ApiKeyRotated',
    accountId: ACCOUNT_ID,
    keyId: KEY_ID,
    rotation,
    secretHash: hash(String(rotation)),
    prefix: `mf_staging_${rotation}`,
    graceEndsAt,
    rotatedAt,
  }
}

export function revoked(revokedAt: Date): ApiKeyRevoked {
  return { type: 'ApiKeyRevoked', accountId: ACCOUNT_ID, keyId: KEY_ID, revokedBy: KEY_ID, revokedAt }
}
