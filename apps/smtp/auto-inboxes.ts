import { LRUCache } from 'lru-cache'
import { planWithLimits, type Plan, type PlanTable } from '#libs/domain/account/access.js'
import { defaultFaultsOf, type Account } from '#libs/domain/account/account.js'
import { usedByInboxes } from '#libs/domain/account/quota.js'
import type { AccountId, InboxId, KeyId } from '#libs/domain/ids/typeid.js'
import { decide, isOverRetention } from '#libs/domain/inbox/decide.js'
import type { Address, InboxDetails } from '#libs/domain/inbox/events.js'
import { faultsForInbox } from '#libs/domain/inbox/fault.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { defaultLifespan, MAX_LABELS } from '#libs/domain/inbox/new-inbox.js'
import type { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { createOnce } from '#libs/ports/idempotency/create-once.js'
import type { IdempotencyStore } from '#libs/ports/idempotency/idempotency-store.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { detailsContext, sealJson } from '#libs/ports/key-vault/sealing.js'
import type { RateLimits } from '#libs/ports/rate-limit/rate-limits.js'
import { isExcess, type AccountQuotas, type QuotaReservation } from '#libs/ports/read-model/account-quotas.js'
import { ALL } from '#libs/ports/read-model/lists.js'
import { ViewsCatchingUpError, type ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries, MailQueries } from '#libs/ports/read-model/queries.js'
import type { RecipientDomains } from '#libs/role/recipient-domains.js'
import { UnavailableError } from '#libs/runtime/errors.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { MissingInbox } from './recipients.js'
import { Refusal, REFUSALS } from './replies.js'

export interface AutoInboxesOptions {
  domains: Pick<RecipientDomains, 'firstAccount'>
  vault: Pick<KeyVault, 'create'>
  inboxes: Pick<MailQueries, 'inbox' | 'inboxAt'>
  accounts: Pick<AccountQueries, 'account' | 'listKeys'>
  views: Pick<ConsistentViews, 'waitUntilVisible' | 'readComplete' | 'find'>
  idempotency: Pick<IdempotencyStore, 'reserve' | 'finish' | 'release'>
  limits: Pick<RateLimits, 'consume'>
  recorder: Pick<Recorder, 'record'>
  quotas: Pick<AccountQuotas, 'reserve'>
  plans: PlanTable
  settings: Pick<Settings, 'autoInboxesPerDay' | 'autoInboxesPerMinute'>
  now: () => Date
  onError: (error: unknown) => void
}

interface Owner {
  account: Account
  environment: string
  keyId: KeyId
}

const ENVIRONMENT = 'development'
const DAY_SECONDS = 86_400
const MINUTE_SECONDS = 60
/** How long the key is remembered by which the usage of new inboxes is counted. */
const REMEMBERED_MS = 10_000

/**
 * Creates inboxes for unknown recipients: those in a domain of an account as its catch-all says, those in other domains
 * in the environment `development` of the first account.
 */
export class AutoInboxes {
  private readonly creating = new Map<Address, Promise<Inbox | Refusal>>()
  private readonly keyIds = new LRUCache<string, KeyId>({ max: 1_000, ttl: REMEMBERED_MS })

  constructor(private readonly options: AutoInboxesOptions) {}

  /** Resolves once the inbox accepts mail. `sender` is the network whose inboxes are counted. Never rejects. */
  create(missing: MissingInbox, sender: string): Promise<Inbox | Refusal> {
    const { address } = missing
    const promise =
      this.creating.get(address) ??
      this.createOnce(missing, sender)
        .catch((error: unknown) => this.unavailable(error))
        .finally(() => this.creating.delete(address))
    this.creating.set(address, promise)
    return promise
  }

  private unavailable(error: unknown): Refusal {
    if (error instanceof ViewsCatchingUpError) return REFUSALS.catchingUp
    this.options.onError(error)
    return error instanceof UnavailableError ? REFUSALS.logUnavailable : REFUSALS.internalError
  }

  private async createOnce(missing: MissingInbox, sender: string): Promise<Inbox | Refusal> {
    const { idempotency, inboxes } = this.options
    const outcome = await createOnce(missing, {
      idempotency,
      inboxes,
      create: (inboxId) => this.createInbox(missing, inboxId, sender),
      isCreated: (created: Inbox | Refusal) => !(created instanceof Refusal),
    })
    return outcome ?? REFUSALS.catchingUp
  }

  /** Creates the inbox within the limits and quotas of the account. */
  private async createInbox(
    missing: MissingInbox,
    inboxId: InboxId,
    sender: string,
  ): Promise<Inbox | Refusal> {
    const { plans, quotas, views, inboxes } = this.options
    const { address, previous } = missing
    const before = await views.find('inbox-events', () => inboxes.inboxAt(address))
    // The views did not show this inbox to RCPT TO.
    if ((before?.inbox.id ?? null) !== previous) return REFUSALS.catchingUp
    const owner = await this.ownerOf(missing)
    const known = owner === null ? undefined : plans.get(owner.account.plan)
    if (owner === null || known === undefined) return REFUSALS.unknownRecipient
    const { account, environment, keyId } = owner
    const { id: accountId, limits } = account
    // RCPT TO did not know. Other recipients of the mail may be in another account.
    if (account.suspendedAt !== null) return REFUSALS.recipientsChanged
    const reserved = await quotas.reserve({ accountId, environment, keyId }, usedByInboxes(1))
    if (isExcess(reserved)) return REFUSALS.quotaExceeded
    try {
      if (!(await this.mayCreate(accountId, sender))) return REFUSALS.tooManyNewInboxes
      return await this.append(missing, inboxId, owner, planWithLimits(known, limits), reserved)
    } finally {
      reserved.release()
    }
  }

  /** Resolves once the views show the inbox. */
  private async append(
    { address, domain }: MissingInbox,
    inboxId: InboxId,
    { account, environment, keyId }: Owner,
    { retention, maxMessages }: Plan,
    reserved: QuotaReservation,
  ): Promise<Inbox> {
    const { vault, inboxes, views, recorder, now } = this.options
    const details: InboxDetails = { name: null }
    const sealed = sealJson(await vault.create(inboxId), detailsContext(inboxId), details)
    const name = domain?.name ?? address.slice(address.lastIndexOf('@') + 1)
    const attribution = { accountId: account.id, environment, keyId }
    const { duration = null, labels = {} } = domain?.catchAll.action === 'create' ? domain.catchAll : {}
    const isTooLong = duration !== null && isOverRetention(duration, retention)
    const lifespan = isTooLong ? retention : (duration ?? defaultLifespan(retention))
    const { events } = decide(
      { inbox: null, message: null },
      {
        ...{ type: 'CreateInbox', inboxId, ...attribution, address, cause: 'mail', sealed },
        ...{ lifespan, retention, maxMessages, isProtected: false },
        labels: Object.keys(labels).length < MAX_LABELS ? { domain: name, ...labels } : labels,
        faults: faultsForInbox(defaultFaultsOf(account, environment), inboxId),
        now: now(),
      },
    )
    const [created] = events
    if (created === undefined) throw new Error(`the inbox ${inboxId} was refused`)
    const position = await recorder.record(created, attribution)
    reserved.fill(usedByInboxes(1), position)
    await views.waitUntilVisible(position)
    const row = await inboxes.inbox(inboxId)
    if (row === null) throw new ViewsCatchingUpError('The inbox is stored but cannot be read yet.')
    return row.inbox
  }

  /** The domain's account, or else the first one. */
  private async ownerOf({ domain }: MissingInbox): Promise<Owner | null> {
    const { domains, accounts, views } = this.options
    const accountId = domain?.accountId ?? (await domains.firstAccount())
    if (accountId === null) return null
    const environment = domain?.environment ?? ENVIRONMENT
    return views.readComplete('account-events', async () => {
      const account = await accounts.account(accountId)
      const keyId = await this.firstKey(accountId, environment)
      return account === null || keyId === null ? null : { account, environment, keyId }
    })
  }

  /**
   * The account's first key in the environment, or else in any, also if it was revoked. All keys are read for that, so it
   * is remembered for some seconds.
   */
  private async firstKey(accountId: AccountId, environment: string): Promise<KeyId | null> {
    const name = `${accountId} ${environment}`
    const known = this.keyIds.get(name)
    if (known !== undefined) return known
    const keys = await this.options.accounts.listKeys(accountId, ALL)
    const key = keys.find((each) => each.environment === environment) ?? keys[0]
    if (key !== undefined) this.keyIds.set(name, key.id)
    return key?.id ?? null
  }

  /** Counts a new inbox. Returns whether the limits of its sender and of the account allow it. */
  private async mayCreate(accountId: string, sender: string): Promise<boolean> {
    const { limits, settings } = this.options
    const { autoInboxesPerMinute: perMinute, autoInboxesPerDay: perDay } = settings
    const ofSender = { name: 'auto-inboxes', quota: perMinute, windowSeconds: MINUTE_SECONDS }
    const ofAccount = { name: 'auto-inboxes-a-day', quota: perDay, windowSeconds: DAY_SECONDS }
    const { isAllowed } = await limits.consume(`sender ${sender}`, [ofSender])
    return isAllowed && (await limits.consume(accountId, [ofAccount])).isAllowed
  }
}
