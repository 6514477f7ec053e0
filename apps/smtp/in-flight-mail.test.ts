import { setTimeout as pause } from 'node:timers/promises'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import { progressChannel } from '#libs/ports/read-model/consistent-views.js'
import { InProcessSignals } from '#libs/ports/signals/signals.js'
import type { Release } from '#libs/runtime/fairness/budget.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { until } from '#test/harness/until.js'
import { InFlightMail } from './in-flight-mail.js'

const MIB = 2 ** 20
const [account, other] = [1, 2].map((n) => idFromBytes('acc', Buffer.alloc(16, n)))
const PARTITION = { topic: 'inbox-events', partition: 1 } as const
const NEVER = new AbortController().signal

describe('mail that the views do not show yet', () => {
  /** The position of the views in every partition. */
  let position: number
  let signals: InProcessSignals
  let inFlight: InFlightMail
  let isExhausted: boolean

  beforeEach(() => {
    position = 0
    isExhausted = false
    signals = new InProcessSignals()
    inFlight = new InFlightMail({
      inboxes: {
        progress: ({ topic, partition }: Partition) =>
          Promise.resolve({ topic, partition, position, target: 0, logId: 'the-log', begunAtMs: 1 }),
      },
      signals,
      maxBytes: 64 * MIB,
      onExhausted: () => (isExhausted = true),
    })
  })
  afterEach(() => inFlight.close())

  /** Takes the budget for one mail of 3 MiB, so that a second one does not fit. */
  async function take(accountId = account): Promise<Release> {
    if (accountId === undefined) throw new Error('no account')
    const release = await inFlight.take(accountId, 3 * MIB, NEVER)
    if (release === null) throw new Error('refused')
    return release
  }

  function advance(to: number): void {
    position = to
    signals.publish(progressChannel(PARTITION))
  }

  async function isSettled(promise: Promise<unknown>): Promise<boolean> {
    const pending = Symbol('pending')
    return (await Promise.race([promise, pause(50, pending)])) !== pending
  }

  it('delays further mail of its account, and of no other', async () => {
    const release = await take()
    const second = take()
    expect(await isSettled(second)).toBe(false)
    expect(await isSettled(take(other))).toBe(true)
    release()
    await second
  })

  it('is released when the views show it', async () => {
    inFlight.releaseWhenVisible({ ...PARTITION, offset: 7 }, await take())
    const second = take()
    advance(7)
    expect(await isSettled(second)).toBe(false)
    advance(8)
    inFlight.releaseWhenVisible({ ...PARTITION, offset: 8 }, await second)
    const third = take()
    expect(await isSettled(third)).toBe(false)
    advance(9)
    await third
  })

  it('is released after a second even if the views have stopped', async () => {
    inFlight.releaseWhenVisible({ ...PARTITION, offset: 7 }, await take())
    await take()
    expect(isExhausted).toBe(false)
  })

  it('delays no mail once the views have stopped for five seconds, until they advance', async () => {
    const append = async (offset: number) =>
      inFlight.releaseWhenVisible({ ...PARTITION, offset }, await take())
    const beganAtMs = performance.now()
    for (let offset = 1; performance.now() - beganAtMs < 6_500; offset += 1) await append(offset)
    await take()
    expect(await isSettled(Promise.all([take(), take()]))).toBe(true)
    if (account === undefined) throw new Error('no account')
    expect(await inFlight.take(account, 3 * MIB, AbortSignal.abort())).toBeNull()
    advance(3)
    await append(100)
    await until('a mail to wait', async () => !(await isSettled(take(other))))
  })

  it('is refused if its client disconnects while it waits', async () => {
    if (account === undefined) throw new Error('no account')
    expect(await inFlight.take(account, 3 * MIB, AbortSignal.abort())).not.toBeNull()
    const leaving = new AbortController()
    const second = inFlight.take(account, 3 * MIB, leaving.signal)
    leaving.abort()
    expect(await second).toBeNull()
  })

  it('counts more than its bytes if it is small', async () => {
    if (account === undefined) throw new Error('no account')
    for (let n = 0; n < 60; n += 1) await inFlight.take(account, 1_000, NEVER)
    expect(
      await isSettled(Promise.all(Array.from({ length: 5 }, () => inFlight.take(account, 1_000, NEVER)))),
    ).toBe(false)
  })

  it('counts for the time that its bytes take to parse, up to 64 KiB', async () => {
    if (account === undefined || other === undefined) throw new Error('no account')
    for (let n = 0; n < 11; n += 1) await inFlight.take(account, 40_000, NEVER)
    expect(await isSettled(inFlight.take(account, 40_000, NEVER))).toBe(false)
    await inFlight.take(other, 100_000, NEVER)
    expect(await isSettled(inFlight.take(other, 100_000, NEVER))).toBe(true)
  })

  it('is less for each account while several send mail', async () => {
    if (account === undefined || other === undefined) throw new Error('no account')
    await inFlight.take(other, 1_000, NEVER)
    for (let n = 0; n < 18; n += 1) await inFlight.take(account, 1_000, NEVER)
    expect(
      await isSettled(Promise.all(Array.from({ length: 5 }, () => inFlight.take(account, 1_000, NEVER)))),
    ).toBe(false)
    expect(await isSettled(inFlight.take(other, 1_000, NEVER))).toBe(true)
  })
})
