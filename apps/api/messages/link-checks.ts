import pLimit from 'p-limit'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { Budget } from '#libs/runtime/fairness/budget.js'
import { mainThread } from '#libs/runtime/fairness/time-shares.js'
import { AttemptError, exchangeError } from '#libs/runtime/outbound/attempt-error.js'
import { Connector, CONNECTOR_BOUNDS } from '#libs/runtime/outbound/connector.js'
import {
  policyOf,
  readDestination,
  type DestinationPolicy,
  type DestinationSettings,
} from '#libs/runtime/outbound/destination.js'
import { GuardedClient } from '#libs/runtime/outbound/guarded-client.js'
import { shuttingDown } from '../http/problems.js'
import type { CheckedLink } from './message-schemas.js'

/** The links of a message that are requested. */
export const MAX_LINKS = 100
export const MAX_REDIRECTS = 5
/** Links that are requested at once. */
const AT_ONCE = { total: 32, perAccount: 4 }
/** A request that takes longer mostly waits for its host, so it leaves the main thread to others. */
const TURN_MS = 100
const BOUNDS = {
  /** The maximum time for a link, with its redirects. */
  linkMs: 10_000,
  /** The maximum time for all links of a message. Clients wait 30 seconds for an answer. */
  checkMs: 25_000,
}

const CLIENT_OPTIONS = { maxHeaderSize: 16 * 1_024, allowH2: false, headersTimeout: 0, bodyTimeout: 0 }
const HEADERS = { 'user-agent': 'Mayfly-Link-Check/1', accept: '*/*' }
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** The answers to HEAD of servers that may answer GET (RFC 9110, sections 15.5.4, 15.5.6 and 15.6.2). */
const HEAD_REFUSED = new Set([403, 405, 501])

export interface LinkChecksOptions extends DestinationSettings {
  /** Null for the system's servers. */
  dnsServers: readonly string[] | null
  /** Called when a link has waited too long for its account's turn. */
  onExhausted: () => void
  bounds?: Partial<typeof BOUNDS>
  /** Replaces the policy of the settings. */
  policy?: DestinationPolicy
}

interface Answer {
  status: number
  location: string | undefined
}

/** Requests the links of mails. The links and their hosts may be hostile: the destinations of webhooks are allowed. */
export class LinkChecks {
  private readonly bounds: typeof BOUNDS
  private readonly policy: DestinationPolicy
  private readonly connector: Connector
  private readonly turns: Budget
  private readonly closing = new AbortController()

  constructor(options: LinkChecksOptions) {
    const { allowPrivate, dnsServers, onExhausted, bounds, policy = policyOf(options) } = options
    this.bounds = { ...BOUNDS, ...bounds }
    this.policy = policy
    this.connector = new Connector({ ...CONNECTOR_BOUNDS, policy, dnsServers, allowPrivate })
    const { total, perAccount: perOwner } = AT_ONCE
    this.turns = new Budget({ total, perOwner, waitMs: this.bounds.checkMs, onExhausted })
  }

  /** Requests each link, in turn by account. Throws the signal's reason if it aborts, and shutting-down. */
  async check(
    accountId: AccountId,
    hrefs: readonly string[],
    clientGone: AbortSignal,
  ): Promise<CheckedLink[]> {
    const ended = AbortSignal.any([clientGone, this.closing.signal])
    const signal = AbortSignal.any([ended, AbortSignal.timeout(this.bounds.checkMs)])
    const limit = pLimit(AT_ONCE.perAccount)
    const check = async (href: string, index: number): Promise<CheckedLink> => {
      if (index >= MAX_LINKS) return failed(href, `only the first ${MAX_LINKS} links are requested`)
      const release = await this.turns.takeOrNull(accountId, 1, signal)
      if (release === null) return failed(href, 'there was no time left to request it')
      const endTurn = await mainThread.take(accountId, AT_ONCE.perAccount)
      const timer = setTimeout(endTurn, TURN_MS)
      try {
        return await this.follow(href, signal)
      } finally {
        clearTimeout(timer)
        endTurn()
        release()
      }
    }
    const checked = await Promise.all(hrefs.map((href, index) => limit(check, href, index)))
    ended.throwIfAborted()
    return checked
  }

  /** Ends the checks in progress. */
  close(): void {
    this.closing.abort(shuttingDown())
    this.connector.close()
  }

  /** Requests a link and what it redirects to. */
  private async follow(href: string, signal: AbortSignal): Promise<CheckedLink> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(this.bounds.linkMs)])
    let url = href
    for (let redirects = 0; ; redirects += 1) {
      let answer: Answer
      try {
        answer = await this.request(url, deadline)
      } catch (error) {
        const failure = exchangeError(error)
        if (failure === null) throw error
        return failed(href, redirects === 0 ? failure.detail : `after a redirect: ${failure.detail}`)
      }
      const { status, location } = answer
      if (!REDIRECTS.has(status) || location === undefined) return { href, status, error: null }
      if (redirects === MAX_REDIRECTS) return failed(href, `more than ${MAX_REDIRECTS} redirects`, status)
      const next = URL.parse(location, url)
      if (next === null) return failed(href, 'the redirect has no valid URL', status)
      url = next.href
    }
  }

  private async request(url: string, deadline: AbortSignal): Promise<Answer> {
    const destination = readDestination(url, this.policy)
    if (destination instanceof AttemptError) throw destination
    const answer = await this.send({ ...destination, method: 'HEAD' }, deadline)
    return HEAD_REFUSED.has(answer.status) ? this.send({ ...destination, method: 'GET' }, deadline) : answer
  }

  /** Resolves with the headers of the answer. Its content is not read. */
  private async send(
    { origin, path, method }: { origin: string; path: string; method: 'HEAD' | 'GET' },
    deadline: AbortSignal,
  ): Promise<Answer> {
    const client = new GuardedClient(new URL(origin), CLIENT_OPTIONS, this.connector.connect)
    const late = () => void client.destroy(new AttemptError('timeout', 'the response did not arrive in time'))
    deadline.addEventListener('abort', late)
    try {
      if (deadline.aborted) late()
      const { statusCode: status, headers, body } = await client.request({ path, method, headers: HEADERS })
      body.on('error', () => undefined)
      // RFC 9110, section 15.
      if (status < 100 || status > 599)
        throw new AttemptError('protocol', 'the response has an invalid status')
      const [location] = [headers.location ?? []].flat()
      return { status, location }
    } finally {
      deadline.removeEventListener('abort', late)
      void client.destroy()
    }
  }
}

function failed(href: string, error: string, status: number | null = null): CheckedLink {
  return { href, status, error }
}
