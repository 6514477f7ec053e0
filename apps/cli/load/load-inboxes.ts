import { ApiError, Mayfly, MayflyError, UnreachableError } from '#clients/typescript/src/mayfly.js'
import type { ApiClient } from '../api-client.js'
import { pairsOf } from '../arguments.js'
import { EXIT, Failure, failureOf } from '../failure.js'
import { interrupted } from './interrupts.js'

export interface RunInbox {
  id: string
  address: string
}

export interface InboxOptions {
  inboxes: number
  label: readonly string[]
  reuse?: boolean
}

const MAX_BULK = 10_000
const MAX_PAGE_SIZE = 1_000
const BULK_TIMEOUT_MS = 300_000

/**
 * The inboxes of a run: new ones with its labels or, with --reuse, those that are active and have them. Rejects with
 * Failure. The signal interrupts it.
 */
export async function inboxesOf(
  options: InboxOptions,
  api: ApiClient,
  signal: AbortSignal,
): Promise<RunInbox[]> {
  try {
    return options.reuse === true ? await reused(options, api, signal) : await created(options, api, signal)
  } catch (error) {
    throw signal.aborted ? interrupted() : error
  }
}

async function reused({ inboxes: count, label }: InboxOptions, api: ApiClient, signal: AbortSignal) {
  const query = { label, state: 'active' }
  const found = await api.list<RunInbox>('/v1/inboxes', count, { query, signal }, MAX_PAGE_SIZE)
  if (found.length > 0) return found.map(({ id, address }) => ({ id, address }))
  throw new Failure(EXIT.notFound, `no active inbox has the label ${label.join(' ')}`)
}

async function created({ inboxes: count, label }: InboxOptions, api: ApiClient, signal: AbortSignal) {
  const mayfly = new Mayfly({ url: api.url, apiKey: api.key, timeoutMs: BULK_TIMEOUT_MS })
  const inboxes: RunInbox[] = []
  while (inboxes.length < count) {
    const options = { count: Math.min(count - inboxes.length, MAX_BULK), labels: pairsOf(label), signal }
    const some = await mayfly.inboxes.createMany(options).catch((error: unknown) => {
      throw failureFrom(error)
    })
    for (const { id, address } of some) inboxes.push({ id, address })
  }
  return inboxes
}

function failureFrom(error: unknown): unknown {
  if (error instanceof ApiError) return failureOf(error.status, error.problem)
  if (error instanceof UnreachableError) return new Failure(EXIT.unavailable, error.message)
  return error instanceof MayflyError ? new Failure(EXIT.failed, error.message) : error
}
