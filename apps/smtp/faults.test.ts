import { setTimeout as pause } from 'node:timers/promises'
import { Registry } from 'prom-client'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Fault } from '#libs/domain/inbox/fault.js'
import { created, makeFault } from '#libs/domain/inbox/inbox.test-support.js'
import { evolve } from '#libs/domain/inbox/inbox.js'
import { memoryRateLimits } from '#libs/ports/rate-limit/memory-rate-limits.js'
import { RateLimitsUnavailableError } from '#libs/ports/rate-limit/rate-limits.js'
import { MailFaults, type MailFaultsOptions } from './faults.js'

const SENDER = { mailFrom: 'app@x.test', rcptTo: created.address }
const CLIENT = { disconnected: null, bytes: 0 }
const REJECTED = '451 4.0.0 a fault on purpose\r\n'

function inboxWith(...faults: Fault[]): Inbox {
  const { inbox } = evolve({ inbox: null, message: null }, { ...created, faults })
  if (inbox === null) throw new Error('there is no inbox')
  return inbox
}

describe('faults on purpose at the SMTP edge', () => {
  let registry: Registry
  let errors: unknown[]
  let options: MailFaultsOptions
  let faults: MailFaults

  beforeEach(() => {
    registry = new Registry()
    errors = []
    options = {
      limits: memoryRateLimits(),
      registry,
      now: () => created.createdAt,
      onError: (error) => errors.push(error),
    }
    faults = new MailFaults(options)
  })

  const rcpt = async (inbox: Inbox, sender: Partial<typeof SENDER> = {}) =>
    (await faults.refusalAt('rcpt', [{ inbox, ...SENDER, ...sender }], CLIENT))?.line ?? 'accepted'
  async function rcptTimes(times: number, inbox: Inbox): Promise<string[]> {
    const replies: string[] = []
    for (let n = 0; n < times; n += 1) replies.push(await rcpt(inbox))
    return replies
  }

  it('apply at their own stage only', async () => {
    const inbox = inboxWith(makeFault({ stage: 'data' }))
    expect(await rcpt(inbox)).toBe('accepted')
    expect((await faults.refusalAt('data', [{ inbox, ...SENDER }], CLIENT))?.line).toBe(REJECTED)
    expect(await faults.afterAccept({ inbox, ...SENDER })).toBe('deliver')
  })

  it('count attempts per sender and recipient for the first ones, and per inbox for every nth', async () => {
    const greylisting = inboxWith(makeFault({ firstN: 1 }))
    expect(await rcptTimes(2, greylisting)).toEqual([REJECTED, 'accepted'])
    expect(await rcpt(greylisting, { mailFrom: 'other@x.test' })).toBe(REJECTED)
    expect(await rcpt(greylisting, { mailFrom: 'APP@X.test' })).toBe('accepted')
    const third = inboxWith(makeFault({ everyN: 3 }))
    const { id } = third
    expect(await rcptTimes(6, { ...third, id: `${id}x` as typeof id })).toEqual([
      ...['accepted', 'accepted', REJECTED],
      ...['accepted', 'accepted', REJECTED],
    ])
  })

  it('require all conditions', async () => {
    const inbox = inboxWith(makeFault({ firstN: 2, everyN: 2 }))
    expect(await rcptTimes(4, inbox)).toEqual(['accepted', REJECTED, 'accepted', 'accepted'])
  })

  it('choose the same attempts for the same seed, about as many as the probability says', async () => {
    const inbox = inboxWith(makeFault({ stage: 'after_accept', action: 'drop', probability: 0.25, seed: 1 }))
    const outcomes = async (revision: number) => {
      const found: string[] = []
      for (let n = 0; n < 400; n += 1) {
        found.push(
          await faults.afterAccept({ inbox: { ...inbox, faultsRevision: revision } as Inbox, ...SENDER }),
        )
      }
      return found
    }
    const first = await outcomes(1)
    expect(await outcomes(2)).toEqual(first)
    const dropped = first.filter((outcome) => outcome === 'drop').length
    expect(dropped).toBeGreaterThan(60)
    expect(dropped).toBeLessThan(140)
  })

  it('end a delay when the client disconnects, and refuse its mail', async () => {
    const inbox = inboxWith(makeFault({ stage: 'data', action: 'delay', code: null, delayMs: 60_000 }))
    const disconnecting = new AbortController()
    const client = { disconnected: disconnecting.signal, bytes: 100 }
    const delayed = faults.refusalAt('data', [{ inbox, ...SENDER }], client)
    disconnecting.abort()
    expect((await delayed)?.line).toBe('451 4.4.2 the client has disconnected\r\n')
  })

  it('delay a bounded number of replies, and no mail over the memory for it', async () => {
    const inbox = inboxWith(makeFault({ stage: 'data', action: 'delay', code: null, delayMs: 60_000 }))
    const disconnecting = new AbortController()
    const client = { disconnected: disconnecting.signal, bytes: 0 }
    const delayOf = (bytes: number) => faults.refusalAt('data', [{ inbox, ...SENDER }], { ...client, bytes })
    expect(await delayOf(32 * 1024 * 1024 + 1)).toBeNull()
    const delayed = Array.from({ length: 200 }, () => delayOf(1_000))
    expect(await delayOf(1_000)).toBeNull()
    expect(await Promise.race([...delayed, pause(50, 'delayed')])).toBe('delayed')
    disconnecting.abort()
    await Promise.all(delayed)
  })

  it('do not apply if too many counts were started for the account, or for all', async () => {
    faults = new MailFaults({ ...options, registry: new Registry(), maxCounts: { ofAccount: 1, ofAll: 2 } })
    const greylisting = inboxWith(makeFault({ firstN: 1 }))
    const ofAccount = (accountId: string) => ({ ...greylisting, accountId, id: `${accountId}x` }) as Inbox
    expect(await rcpt(ofAccount('one'))).toBe(REJECTED)
    expect(await rcpt(ofAccount('one'), { mailFrom: 'other@x.test' })).toBe('accepted')
    expect(await rcpt(ofAccount('two'))).toBe(REJECTED)
    expect(await rcpt(ofAccount('three'))).toBe('accepted')
    expect(errors).toEqual([])
  })

  it('accept mail if attempts can not be counted', async () => {
    const limits = { charge: () => Promise.reject(new RateLimitsUnavailableError('away')) }
    faults = new MailFaults({
      limits,
      registry: new Registry(),
      now: () => created.createdAt,
      onError: (error) => errors.push(error),
    })
    expect(await rcpt(inboxWith(makeFault({ firstN: 1 })))).toBe('accepted')
    expect(errors).toHaveLength(1)
    expect(await rcpt(inboxWith(makeFault()))).toBe(REJECTED)
  })

  it('are counted by stage and action', async () => {
    await rcpt(inboxWith(makeFault()))
    expect(await registry.metrics()).toContain('mayfly_faults_total{stage="rcpt",action="reject"} 1')
  })
})
