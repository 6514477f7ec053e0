// Disposable inboxes in k6 load tests. Needs k6 1.0 or later, and no extension.
import { sleep } from 'k6'
import exec from 'k6/execution'
import http from 'k6/http'

const DEFAULT_URL = 'http://127.0.0.1:3000'
const DEFAULT_TIMEOUT_SECONDS = 30
/** The longest wait that the API takes in one request. */
const MAX_POLL_SECONDS = 55
/** More time than an answer needs after its wait. */
const GRACE_SECONDS = 10
const RETRY_SECONDS = 1
const SUCCESS = http.expectedStatuses({ min: 200, max: 299 })

const MESSAGES = '/v1/inboxes/{id}/messages'
const WAIT = `${MESSAGES}/wait`

/**
 * @typedef {object} Settings
 * @property {string} [url] The server. Default: MAYFLY_URL, then http://127.0.0.1:3000.
 * @property {string} [key] The API key. Default: MAYFLY_KEY.
 */

/**
 * @typedef {object} NewInbox
 * @property {string} [duration] Its lifetime, such as `30m` or `24h`.
 * @property {string} [name]
 * @property {Record<string, string>} [labels]
 * @property {boolean} [password_protected]
 */

/**
 * @typedef {object} Inbox
 * @property {string} id
 * @property {string} address
 * @property {string} expires_at
 * @property {Record<string, string>} labels
 * @property {string} [password] Of a protected inbox; it is sent with each request.
 */

/**
 * Which message a wait is for. All filters must hold; texts match if they are contained, in upper or lower case.
 * @typedef {object} Filters
 * @property {string} [subject]
 * @property {string} [sender]
 * @property {string} [recipient]
 * @property {string} [to]
 * @property {string | string[]} [header] `<name>:<text>`
 * @property {string} [text]
 * @property {boolean} [has_code]
 * @property {boolean} [has_link]
 * @property {string} [extract] An expression (RE2) that must match; the message has its matches as `extracted`.
 * @property {string} [since] The earliest `received_at`.
 * @property {string} [until]
 * @property {'asc' | 'desc'} [order] `asc`, the default, takes the oldest match.
 * @property {string} [cursor] Only messages after this position: `cursor` of an earlier message.
 * @property {number} [timeout] Seconds to wait, as long as you like. Default: 30.
 */

/**
 * @typedef {object} Count
 * @property {string} label `<name>:<value>`
 * @property {number} count
 * @property {number} [per_inbox]
 * @property {'at_least' | 'exactly'} [mode]
 * @property {number} [timeout] Seconds to wait, as long as you like. Default: 30.
 */

/**
 * @typedef {object} Mail
 * @property {string} from
 * @property {string} subject
 * @property {string} [text]
 * @property {string} [html]
 * @property {Record<string, string>} [headers]
 * @property {{ filename: string, content_type: string, content: string }[]} [attachments] `content` is base64.
 */

/**
 * @typedef {object} Match
 * @property {string} text
 * @property {(string | null)[]} groups
 */

/**
 * @typedef {object} Message
 * @property {string} id
 * @property {string | null} subject
 * @property {string | null} text
 * @property {string | null} html
 * @property {{ value: string }[]} codes
 * @property {{ href: string, text: string | null }[]} links
 * @property {Match[]} [extracted] The matches of `extract`.
 * @property {string} received_at
 * @property {string} cursor The position after this message.
 */

/** The API refused a request, or did not answer. The message says why, and what to do. */
export class MayflyError extends Error {
  /**
   * @param {string} message
   * @param {Record<string, unknown> | null} problem The answer of the API, with its `code`; null if there is none.
   */
  constructor(message, problem = null) {
    super(message)
    this.name = 'MayflyError'
    this.problem = problem
  }
}

/**
 * Creates an inbox.
 * @param {NewInbox} [properties]
 * @param {Settings} [settings]
 * @returns {Inbox}
 */
export function createInbox(properties = {}, settings = {}) {
  return send({ method: 'POST', route: '/v1/inboxes', body: properties }, settings).json()
}

/**
 * Deletes an inbox with its mail.
 * @param {Inbox} inbox
 * @param {Settings} [settings]
 */
export function deleteInbox(inbox, settings = {}) {
  send({ method: 'DELETE', route: '/v1/inboxes/{id}', inbox }, settings)
}

/**
 * Puts a mail into an inbox without SMTP.
 * @param {Inbox} inbox
 * @param {Mail} mail
 * @param {Settings} [settings]
 * @returns {Message}
 */
export function injectMessage(inbox, mail, settings = {}) {
  return send({ method: 'POST', route: MESSAGES, inbox, body: mail }, settings).json()
}

/**
 * Waits for the first message that matches. Throws MayflyError if none does in time.
 * @param {Inbox} inbox
 * @param {Filters} [filters]
 * @param {Settings} [settings]
 * @returns {Message}
 */
export function waitForMessage(inbox, filters = {}, settings = {}) {
  const answer = poll({ method: 'GET', route: WAIT, inbox }, filters, settings)
  return Object.assign(answer.json(), { cursor: answer.headers['Mayfly-Cursor'] })
}

/**
 * Waits for the first message in whose subject, text or visible text an expression matches, and returns the match.
 * The server searches in the syntax of RE2. Throws MayflyError if none does in time.
 * @param {Inbox} inbox
 * @param {string | RegExp} pattern
 * @param {Filters} [filters]
 * @param {Settings} [settings]
 * @returns {Match}
 */
export function waitForMatch(inbox, pattern, filters = {}, settings = {}) {
  const extract = typeof pattern === 'string' ? pattern : expressionOf(pattern)
  const { extracted } = waitForMessage(inbox, { ...filters, extract }, settings)
  if (!extracted) throw new MayflyError('The server does not support extract.')
  return extracted[0]
}

/** An expression as the server reads it. */
function expressionOf({ source, flags }) {
  const escapes = /\\(?:\/|u\{([\da-f]+)\}|u([\da-f]{4})|[^])/gi
  const text = source.replace(escapes, (escape, point, unit) => {
    if (point || unit) return `\\x{${point || unit}}`
    return escape === '\\/' ? '/' : escape
  })
  const kept = flags.replace(/[^ims]/g, '')
  return kept === '' ? text : `(?${kept})${text}`
}

/**
 * Waits until the inboxes of a label have received a number of messages. Throws MayflyError if they do not in time.
 * @param {Count} count
 * @param {Settings} [settings]
 * @returns {{ count: number, inboxes: number, cursor: string }}
 */
export function waitForCount(count, settings = {}) {
  return poll({ method: 'GET', route: '/v1/messages/wait' }, count, settings).json()
}

/** Repeats a wait until it is answered or its time is over. Only the last request without a message counts as failed. */
function poll(request, { timeout = DEFAULT_TIMEOUT_SECONDS, ...query }, settings) {
  const deadline = Date.now() + timeout * 1000
  for (;;) {
    const left = Math.max(0, deadline - Date.now()) / 1000
    const isLast = left <= MAX_POLL_SECONDS
    const seconds = isLast ? Math.ceil(left) : MAX_POLL_SECONDS
    const answer = attempt({ ...request, query: { ...query, timeout: seconds } }, settings, {
      timeout: (seconds + GRACE_SECONDS) * 1000,
      responseCallback: isLast ? SUCCESS : http.expectedStatuses(200, 404),
    })
    if (hasPaused(answer, deadline)) continue
    if (isLast || problemOf(answer)?.code !== 'no-matching-message') return answered(answer)
  }
}

/** Sends a request until the API does not ask for another attempt. */
function send(request, settings) {
  const deadline = Date.now() + DEFAULT_TIMEOUT_SECONDS * 1000
  // The same for all attempts, so that nothing is done twice.
  const headers = request.method === 'POST' ? { 'Idempotency-Key': crypto.randomUUID() } : {}
  for (;;) {
    const timeout = Math.max(1, deadline - Date.now())
    const answer = attempt({ ...request, headers }, settings, { timeout, responseCallback: SUCCESS })
    if (!hasPaused(answer, deadline)) return answered(answer)
  }
}

/**
 * Sleeps after 429 and 503 as `Retry-After` says. False after other answers, if a quota is used up, or if there is no time
 * for it.
 */
function hasPaused({ status, headers, body }, deadline) {
  if (status !== 429 && status !== 503) return false
  if (status === 429 && String(body).includes('"quota-exceeded"')) return false
  const seconds = Number(headers['Retry-After']) || RETRY_SECONDS
  if (Date.now() + seconds * 1000 >= deadline) return false
  sleep(seconds)
  return true
}

function attempt({ method, route, inbox, query = {}, body, headers = {} }, settings, params) {
  const key = settings.key || __ENV.MAYFLY_KEY
  if (!key) exec.test.abort('No API key: set MAYFLY_KEY, or pass `key`.')
  const base = (settings.url || __ENV.MAYFLY_URL || DEFAULT_URL).replace(/\/+$/, '')
  const url = base + route.replace('{id}', () => encodeURIComponent(inbox.id)) + queryOf(query)
  return http.request(method, url, body === undefined ? null : JSON.stringify(body), {
    ...params,
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(inbox?.password ? { 'Mayfly-Inbox-Password': inbox.password } : {}),
      ...headers,
    },
    // One name for all inboxes: k6 keeps a time series for each.
    tags: { name: `${method} ${route}` },
    // Also if the script discards bodies.
    responseType: 'text',
    // The key is sent only to the given address.
    redirects: 0,
  })
}

function queryOf(query) {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((each) => [name, each]))
  const given = pairs.filter(([, value]) => value !== undefined && value !== null)
  const text = given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
  return text === '' ? '' : `?${text}`
}

/** The answer itself. Throws MayflyError if it is not a success. */
function answered(answer) {
  if (answer.status >= 200 && answer.status < 300) return answer
  const { method, url } = answer.request
  const request = `${method} ${url}`
  if (answer.status === 0) {
    throw new MayflyError(
      `${request}: ${answer.error}. Check that Mayfly runs, and that MAYFLY_URL is its address.`,
    )
  }
  const problem = problemOf(answer)
  if (problem === null) {
    throw new MayflyError(`${request}: the answer ${answer.status} does not come from Mayfly.`)
  }
  const { status, code, detail, fix, errors = [], nearest = [] } = problem
  const lines = [
    `${request}: ${detail} (${status} ${code}) ${fix}`,
    ...errors.map((each) => `${each.parameter ?? each.pointer ?? each.header}: ${each.detail}`),
    ...nearest.map((each) => `${JSON.stringify(each.subject)}: ${each.mismatches.join('; ')}`),
  ]
  throw new MayflyError(lines.join('\n  '), problem)
}

/** The problem that the API answered with; null if it is no problem of the API. */
function problemOf(answer) {
  const isProblem = (answer.headers['Content-Type'] ?? '').startsWith('application/problem+json')
  return isProblem ? answer.json() : null
}
