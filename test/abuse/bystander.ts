import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { call, createInbox, mail, messagesOf, send, type Target } from '#test/harness/client.js'
import { startEndpoint } from '#test/harness/endpoint.js'
import { registerWebhook } from '#test/harness/webhooks.js'

/** Latencies of another account during an attack, in milliseconds. */
export interface Times {
  create: number[]
  list: number[]
  accept: number[]
  /** From the answer to a mail until the webhook's endpoint has its event. */
  deliver: number[]
}

const PAUSE_MS = 20

/**
 * Creates an inbox, lists messages, sends a mail and waits for its webhook, repeatedly until `over` settles, at least
 * once.
 */
export async function timesOf(target: Target, over: Promise<unknown>): Promise<Times> {
  const times: Times = { create: [], list: [], accept: [], deliver: [] }
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
      await timed('accept', () => send(target, address, mail('another')))
      await timed('deliver', () => delivered.promise)
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
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? NaN
}
