import { BUILT_IN_PLANS } from '#libs/domain/account/access.js'
import type { Account } from '#libs/domain/account/account.js'
import { quotaName, type QuotaLimit } from '#libs/domain/account/quota.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { Position } from '#libs/ports/event-log/event-log.js'
import { ViewsCatchingUpError } from './consistent-views.js'
import { AccountQuotas, isExcess, type QuotaReservation } from './account-quotas.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const keyId = idFromBytes('key', Buffer.alloc(16, 1))
const staging = { accountId, environment: 'staging', keyId }
const elsewhere = { ...staging, environment: 'elsewhere' }
const INBOX_EVENTS = { topic: 'inbox-events', partition: 0 } as const

/** Views whose reads can be held, and that may lag behind a log of one partition. */
class HeldViews {
  /** Of the whole account and of the environment staging. */
  limits = { account: 10, staging: 2 as number | null }
  used = 0
  end = 0
  position = 0
  /** Whether the views of accounts are. */
  isComplete = true
  private held: Promise<unknown> = Promise.resolve()

  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<null>()
    this.held = promise
    return () => resolve(null)
  }

  readonly quotas = new AccountQuotas({
    plans: BUILT_IN_PLANS,
    log: {
      topology: () =>
        Promise.resolve({ logId: 'log', partitions: [{ ...INBOX_EVENTS, first: 0, end: this.end }] }),
    },
    views: {
      readComplete: (_, read) =>
        this.isComplete ? read() : Promise.reject(new ViewsCatchingUpError('not complete')),
    },
    maxMessageBytes: 1_000_000,
    accounts: {
      account: async () => {
        const { account, staging } = this.limits
        const own: QuotaLimit[] = [
          { quota: 'inboxes', scope: { environment: null, keyId: null }, limit: account },
          ...(staging === null
            ? []
            : [
                { quota: 'inboxes', scope: { environment: 'staging', keyId: null }, limit: staging } as const,
              ]),
        ]
        await this.held
        const quotas = Object.fromEntries(own.map((each) => [quotaName(each), each]))
        return { id: accountId, plan: 'starter', limits: null, quotas } as unknown as Account
      },
    },
    inboxes: {
      progress: (partition) =>
        Promise.resolve({ ...partition, logId: 'log', position: this.position, target: 0, begunAtMs: 0 }),
      usedQuotas: (_, limits) =>
        Promise.resolve(limits.map(({ quota }) => (quota === 'inboxes' ? this.used : 0))),
    },
    now: () => new Date(),
  })

  /** Appends a record that another process made. */
  append(): Position {
    return { ...INBOX_EVENTS, offset: this.end++ }
  }

  /** The views show what the log has. */
  show(used: number): void {
    this.used = used
    this.position = this.end
  }

  showSoon(used: number): void {
    setTimeout(() => this.show(used), 20)
  }

  async reserve(owner: typeof staging, amount: number): Promise<QuotaReservation> {
    const reserved = await this.quotas.reserve(owner, { inboxes: amount })
    if (isExcess(reserved))
      throw new Error(`${reserved.scope.environment}: ${reserved.used} of ${reserved.limit}`)
    return reserved
  }
}

describe('quotas of an account', () => {
  let views: HeldViews
  beforeEach(() => {
    views = new HeldViews()
  })

  it('count what is reserved and filled in each scope', async () => {
    const first = await views.reserve(staging, 1)
    first.fill({ inboxes: 1 }, views.append())
    views.show(1)
    await views.reserve(staging, 1)
    await expect(views.reserve(staging, 1)).rejects.toThrow('staging: 2 of 2')
    await expect(views.reserve(elsewhere, 9)).rejects.toThrow('null: 2 of 10')
    await views.reserve(elsewhere, 8)
  })

  it('reserve nothing in any scope if one has not enough left', async () => {
    await expect(views.reserve(staging, 3)).rejects.toThrow('staging: 0 of 2')
    await views.reserve(elsewhere, 10)
  })

  it('apply a change at once, also while they are being read', async () => {
    const release = views.hold()
    const reading = views.reserve(staging, 1)
    views.limits = { account: 10, staging: 0 }
    views.quotas.forget(accountId)
    release()
    await expect(reading).rejects.toThrow('staging: 0 of 0')
    await expect(views.reserve(staging, 1)).rejects.toThrow('staging: 0 of 0')
  })

  it('keep what is reserved when they are read again, and count what was filled once', async () => {
    const reserved = await views.reserve(staging, 2)
    views.quotas.forget(accountId)
    await expect(views.reserve(staging, 1)).rejects.toThrow('staging: 2 of 2')
    reserved.fill({ inboxes: 1 }, views.append())
    reserved.release()
    reserved.release()
    views.show(1)
    views.quotas.forget(accountId)
    await expect(views.reserve(staging, 2)).rejects.toThrow('staging: 1 of 2')
    await views.reserve(staging, 1)
  })

  it('are never used less than nothing, if one is removed and set again', async () => {
    const reserved = await views.reserve(staging, 2)
    views.limits.staging = null
    views.quotas.forget(accountId)
    const another = await views.reserve(staging, 1)
    views.limits.staging = 2
    views.quotas.forget(accountId)
    await views.reserve(elsewhere, 1)
    reserved.release()
    another.release()
    await views.reserve(staging, 2)
    await expect(views.reserve(staging, 1)).rejects.toThrow('staging: 2 of 2')
  })

  it('count what was appended until the views show it, however often they are read', async () => {
    for (let count = 0; count < 4; count += 1) {
      const reserved = await views.reserve(elsewhere, 1)
      reserved.fill({ inboxes: 1 }, views.append())
      views.quotas.forget(accountId)
    }
    await views.reserve(elsewhere, 2)
    views.showSoon(4)
    await expect(views.reserve(elsewhere, 5)).rejects.toThrow('null: 6 of 10')
    await views.reserve(elsewhere, 4)
  })

  it('wait for the views if what they lack could exceed them, and only then', async () => {
    for (let count = 0; count < 5; count += 1) views.append()
    await views.reserve(elsewhere, 5)
    expect(views.position).toBe(0)
    views.showSoon(3)
    await views.reserve(elsewhere, 2)
    expect(views.position).toBe(5)
    await expect(views.reserve(elsewhere, 1)).rejects.toThrow('null: 10 of 10')
  })

  it('allow exactly as many of concurrent reservations as there is space for', async () => {
    const all = await Promise.all(
      Array.from({ length: 30 }, () => views.quotas.reserve(elsewhere, { inboxes: 1 })),
    )
    expect(all.filter((each) => !isExcess(each))).toHaveLength(10)
  })

  it('are unknown while the views lack what decides, or the account', async () => {
    for (let count = 0; count < 5; count += 1) views.append()
    await expect(views.reserve(elsewhere, 6)).rejects.toThrow(ViewsCatchingUpError)
    expect(await views.quotas.exceeded(elsewhere, { inboxes: 6 })).toBeNull()
    expect(await views.quotas.exceeded(elsewhere, { inboxes: 11 })).toMatchObject({ used: 0, limit: 10 })
    views.show(5)
    expect(await views.quotas.exceeded(elsewhere, { inboxes: 6 })).toMatchObject({ used: 5, limit: 10 })
    views.isComplete = false
    views.quotas.forget(accountId)
    await expect(views.reserve(elsewhere, 1)).rejects.toThrow(ViewsCatchingUpError)
  })

  it('are read for each reservation while little is left', async () => {
    await views.reserve(elsewhere, 1)
    views.show(9)
    await expect(views.reserve(elsewhere, 1)).rejects.toThrow('null: 10 of 10')
  })
})
