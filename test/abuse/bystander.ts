import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { anonymousBytes } from '#libs/runtime/process/metrics.js'
import { call, createInbox, mail, messagesOf, send, type Target } from '#test/harness/client.js'
import { startEndpoint } from '#test/harness/endpoint.js'
import type { Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

export const IS_LONG = process.env.MAYFLY_ABUSE === 'long'
const MIB = 2 ** 20
/** On a busy machine, garbage is collected later. */
const MAX_GROWTH_BYTES = (IS_LONG ? 300 : 400) * MIB
const MEMORY_MIB = 1024
/** Little memory, so that budgets are smaller than by default. */
export const MEMORY_SETTINGS = IS_LONG ? {} : { MAYFLY_MEMORY_MIB: String(MEMORY_MIB) }
const SERVED_WITHIN_MS = IS_LONG ? { half: 100, most: 250 } : { half: 30_000, most: 30_000 }
const FREED_WITHIN_MS = 60_000

/** Latencies of another account during an attack, in milliseconds. */
export interface Times {
  create: number[]
  list: number[]
  accept: number[]
  /** From the answer to a mail until a wait for it is answered. */
  wait: number[]
  /** From the answer to a mail until the webhook's endpoint has its event. */
  deliver: number[]
}

const PAUSE_MS = 20

/**
 * Creates an inbox, lists messages, sends a mail, waits for it and for its webhook, repeatedly until `over` settles, at
 * least once.
 */
export async function timesOf(target: Target, over: Promise<unknown>): Promise<Times> {
  const times: Times = { create: [], list: [], accept: [], wait: [], deliver: [] }
  const { id, address } = await createInbox(target)
  await send(target, address, mail('first'))
  await messagesOf(target, id, 1)
  let delivered = Promise.withResolvers<undefined>()
  const endpoint = await startEndpoint((response) => {
    response.end('ok')
    delivered.resolve(undefined)
  })
  const timed = async (name: keyof Times, work: () => Promise<unknown>) => {
    const begunMs = performance.now()
    await work()
    times[name].push(performance.now() - begunMs)
  }
  const state = { isOver: false }
  const end = () => void (state.isOver = true)
  over.then(end, end)
  try {
    await registerWebhook(target, `/v1/inboxes/${id}/webhooks`, { url: endpoint.url })
    do {
      await timed('create', () => createInbox(target))
      await timed('list', () => call(target, 'GET', `/v1/inboxes/${id}/messages?limit=1`))
      delivered = Promise.withResolvers<undefined>()
      const subject = `mail ${times.accept.length}`
      await timed('accept', () => send(target, address, mail(subject)))
      const wait = `/v1/inboxes/${id}/messages/wait?order=desc&subject=${encodeURIComponent(subject)}`
      await Promise.all([
        timed('wait', () => call(target, 'GET', wait)),
        timed('deliver', () => delivered.promise),
      ])
      await pause(PAUSE_MS)
    } while (!state.isOver)
  } finally {
    await endpoint.dispose()
  }
  return times
}

/** Like `timesOf`, in a worker thread, so that the load of the test itself does not add to the times. */
export async function timesInThread(
  { url, smtpPort, apiKey }: Target,
  over: Promise<unknown>,
): Promise<Times> {
  const file = new URL('./bystander-thread.js', import.meta.url)
  const thread = new Worker(file, { workerData: { url, smtpPort, apiKey } })
  const times = once(thread, 'message') as Promise<[Times]>
  await over.catch(() => undefined)
  thread.postMessage('over')
  return (await times)[0]
}

/** The 99th percentile. */
export function p99(times: readonly number[]): number {
  return percentile(times, 0.99)
}

function percentile(times: readonly number[], part: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * part) - 1] ?? NaN
}

/** Runs an attack. Rejects if another account is not served meanwhile, or if memory grows too much. */
export async function attackBeside(
  { pid }: Pick<Mayfly, 'pid'>,
  other: Target,
  attack: () => Promise<unknown>,
  end: () => void = () => undefined,
): Promise<void> {
  const before = await timesInThread(other, pause(IS_LONG ? 4_000 : 500))
  const bytesBefore = anonymousBytes(pid) ?? 0
  let peakBytes = 0
  const looking = setInterval(() => {
    peakBytes = Math.max(peakBytes, anonymousBytes(pid) ?? 0)
  }, 50)
  try {
    const attacking = attack()
    const during = await timesInThread(other, attacking)
    await attacking
    if (IS_LONG) printTimes(before, during, peakBytes - bytesBefore)
    const slow = NAMES.map((name) => {
      const [half, most] = [percentile(during[name], 0.5), p99(during[name])]
      return { name, half, most, usual: p99(before[name]) }
    }).filter(({ half, most, usual }) => {
      const within = (ms: number) => Math.max(3 * usual, ms)
      return half > within(SERVED_WITHIN_MS.half) || most > within(SERVED_WITHIN_MS.most)
    })
    expect(slow).toEqual([])
    expect(peakBytes - bytesBefore).toBeLessThan(MAX_GROWTH_BYTES)
    if (IS_LONG) {
      const grownBytes = () => (anonymousBytes(pid) ?? 0) - bytesBefore
      await until('memory to be freed', () => grownBytes() < MAX_GROWTH_BYTES / 2, FREED_WITHIN_MS)
    } else {
      expect(peakBytes).toBeLessThan(MEMORY_MIB * MIB)
    }
  } finally {
    clearInterval(looking)
    end()
  }
}

const NAMES = ['create', 'list', 'accept', 'wait', 'deliver'] as const

function printTimes(before: Times, during: Times, grownBytes: number): void {
  const texts = NAMES.map((name) => {
    const [usual, attacked] = [before[name], during[name]].map(
      (times) => `${Math.round(percentile(times, 0.5))}/${Math.round(p99(times))}`,
    )
    return `${name} ${usual} -> ${attacked} ms`
  })
  const { currentTestName } = expect.getState()
  process.stderr.write(
    `${currentTestName}: p50/p99 ${texts.join(', ')}; ${Math.round(grownBytes / MIB)} MiB\n`,
  )
}
