import { setTimeout as pause } from 'node:timers/promises'
import { call, createInbox, mail, messagesOf, send, type Target } from '#test/harness/client.js'

/** How long what another account did meanwhile took, in milliseconds. */
export interface Times {
  create: number[]
  list: number[]
  accept: number[]
}

const PAUSE_MS = 20

/** Creates inboxes, lists messages and sends mail, one after the other, until `over` is settled; once at least. */
export async function timesOf(target: Target, over: Promise<unknown>): Promise<Times> {
  const times: Times = { create: [], list: [], accept: [] }
  const { id, address } = await createInbox(target)
  await send(target, address, mail('first'))
  await messagesOf(target, id, 1)
  const timed = async (name: keyof Times, work: () => Promise<unknown>) => {
    const begunMs = performance.now()
    await work()
    times[name].push(performance.now() - begunMs)
  }
  const state = { isOver: false }
  const end = () => void (state.isOver = true)
  over.then(end, end)
  do {
    await timed('create', () => createInbox(target))
    await timed('list', () => call(target, 'GET', `/v1/inboxes/${id}/messages?limit=1`))
    await timed('accept', () => send(target, address, mail('another')))
    await pause(PAUSE_MS)
  } while (!state.isOver)
  return times
}

/** The 99th percentile. */
export function p99(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? NaN
}
