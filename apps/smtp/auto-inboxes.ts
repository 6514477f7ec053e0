import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { planWithLimits, type Plan, type PlanTable } from '#libs/domain/account/access.js'
import { defaultFaultsOf, type Account, type ApiKey } from '#libs/domain/account/account.js'
import { deriveId } from '#libs/domain/ids/mint.js'
import { decide } from '#libs/domain/inbox/decide.js'
import type { Address, InboxDetails } from '#libs/domain/inbox/events.js'
import { faultsForInbox } from '#libs/domain/inbox/fault.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { defaultLifespan } from '#libs/domain/inbox/new-inbox.js'
import { firstAccount } from '#libs/engines/first-key.js'
import type { Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { LogReader } from '#libs/ports/event-log/event-log.js'
import type { IdempotencyStore, Run } from '#libs/ports/idempotency/idempotency-store.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { detailsContext, sealJson } from '#libs/ports/key-vault/sealing.js'
import type { RateLimits, RatePolicy } from '#libs/ports/rate-limit/rate-limits.js'
import { isExcess, type AccountQuotas } from '#libs/ports/read-model/account-quotas.js'
import { ViewsCatchingUpError, type ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries, MailQueries } from '#libs/ports/read-model/queries.js'
import { UnavailableError } from '#libs/runtime/errors.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { MissingInbox } from './recipients.js'
import { Refusal, REFUSALS } from './replies.js'

export interface AutoInboxesOptions {
  log: LogReader
  vault: Pick<KeyVault, 'create'>
  inboxes: Pick<MailQueries, 'inbox' | 'inboxAt'>
  accounts: Pick<AccountQueries, 'account' | 'listKeys'>
  views: Pick<ConsistentViews, 'waitUntilVisible' | 'readComplete'>
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
  key: ApiKey
}

const ENVIRONMENT = 'development'
const DAY_SECONDS = 86_400
const MINUTE_SECONDS = 60
/** How long a mail waits for another process that creates the same inbox. */
const WAIT_MS = 5_000
const CHECK_EVERY_MS = 25

/**
 * Creates inboxes for unknown recipients in other domains, in the environment `development` of the first account. One
 * of many processes creates an inbox: the one that reserves its address in the idempotency store. If that process is
 * killed, the next mail continues with the same id (docs/decisions/inboxes-made-by-mail.md).
 */
export class AutoInboxes {
  private readonly creating = new Map<Address, Promise<Inbox | Refusal>>()

  constructor(private readonly options: AutoInboxesOptions) {}

  /** Resolves once the inbox accepts mail. `sender` is the network whose inboxes are counted. Never rejects. */
  create(missing: MissingInbox, sender: string): Promise<Inbox | Refusal> {
    const { address } = missing
    const promise =
      this.creating.get(address) ??
      this.reserveAndCreate(missing, sender)
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

  private async reserveAndCreate(missing: MissingInbox, sender: string): Promise<Inbox | Refusal> {
    const { idempotency } = this.options
    const { address, previous } = missing
    const id = hash('sha256', `inbox for mail to ${address} after ${previous}`)
    for (const deadlineMs = performance.now() + WAIT_MS; performance.now() < deadlineMs;) {
      const reserved = await idempotency.reserve({ id, fingerprint: '' })
      if (reserved.state === 'run') return this.createOnce(missing, reserved.run, sender)
      const found = await this.options.inboxes.inboxAt(address)
      if (found !== null && found.inbox.id !== previous) return found.inbox
      await pause(CHECK_EVERY_MS)
    }
    return REFUSALS.catchingUp
  }

  private async createOnce(missing: MissingInbox, run: Run, sender: string): Promise<Inbox | Refusal> {
    const { idempotency } = this.options
    const outcome = await this.createInbox(missing, run, sender).catch(async (error: unknown) => {
      await idempotency.release(run, 'resumable')
      throw error
    })
    if (outcome instanceof Refusal) await idempotency.release(run, 'undone')
    else await idempotency.finish(run, Buffer.alloc(0))
    return outcome
  }

  /** Creates the inbox within the limits and quotas of the account. */
  private async createInbox({ address }: MissingInbox, run: Run, sender: string): Promise<Inbox | Refusal> {
    const { plans, quotas } = this.options
    const owner = await this.owner()
    const known = owner === null ? undefined : plans.get(owner.account.plan)
    if (owner === null || known === undefined) return REFUSALS.unknownRecipient
    const { id, limits } = owner.account
    if (!(await this.mayCreate(id, sender))) return REFUSALS.tooManyNewInboxes
    const reserved = await quotas.reserve(id, 'inboxes', 1)
    if (isExcess(reserved)) return REFUSALS.quotaExceeded
    try {
      const inbox = await this.append(address, run, owner, planWithLimits(known, limits))
      reserved.fill(1)
      return inbox
    } finally {
      reserved.release()
    }
  }

  /** Resolves once the views show the inbox. */
  private async append(
    address: Address,
    run: Run,
    { account, key }: Owner,
    { retention, maxMessages }: Plan,
  ): Promise<Inbox> {
    const { vault, inboxes, views, recorder, now } = this.options
    const inboxId = deriveId('inb', run, 1)
    const details: InboxDetails = { name: null }
    const sealed = sealJson(await vault.create(inboxId), detailsContext(inboxId), details)
    const attribution = { accountId: account.id, environment: ENVIRONMENT, keyId: key.id }
    const { events } = decide(
      { inbox: null, message: null },
      {
        ...{ type: 'CreateInbox', inboxId, ...attribution, address, cause: 'mail', sealed },
        ...{ lifespan: defaultLifespan(retention), retention, maxMessages, isProtected: false },
        labels: { domain: address.slice(address.lastIndexOf('@') + 1) },
        faults: faultsForInbox(defaultFaultsOf(account, ENVIRONMENT), inboxId),
        now: now(),
      },
    )
    const [created] = events
    if (created === undefined) throw new Error(`the inbox ${inboxId} was refused`)
    await views.waitUntilVisible(await recorder.record(created, attribution))
    const row = await inboxes.inbox(inboxId)
    if (row === null) throw new ViewsCatchingUpError('The inbox is stored but cannot be read yet.')
    return row.inbox
  }

  /** The first account, and its key whose environment the inboxes are in, also if that was revoked. */
  private async owner(): Promise<Owner | null> {
    const { log, accounts, views } = this.options
    const accountId = await firstAccount(log)
    if (accountId === null) return null
    return views.readComplete('account-events', async () => {
      const [account, keys] = await Promise.all([
        accounts.account(accountId),
        accounts.listKeys(accountId, { order: 'asc', after: null, limit: Infinity }),
      ])
      const key = keys.find(({ environment }) => environment === ENVIRONMENT) ?? keys[0]
      return account === null || key === undefined ? null : { account, key }
    })
  }

  /** Counts a new inbox. Returns whether the limits of its sender and of the account allow it. */
  private async mayCreate(accountId: string, sender: string): Promise<boolean> {
    const { limits, settings } = this.options
    const { autoInboxesPerMinute, autoInboxesPerDay } = settings
    const policies: [string, RatePolicy][] = [
      [
        `sender ${sender}`,
        { name: 'auto-inboxes', quota: autoInboxesPerMinute, windowSeconds: MINUTE_SECONDS },
      ],
      [accountId, { name: 'auto-inboxes-a-day', quota: autoInboxesPerDay, windowSeconds: DAY_SECONDS }],
    ]
    for (const [counted, policy] of policies) {
      const { isAllowed } = await limits.consume(counted, [policy])
      if (!isAllowed) return false
    }
    return true
  }
}
