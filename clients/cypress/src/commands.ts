import type {
  CreateTask,
  InboxData,
  InboxOptions,
  MessageData,
  Pattern,
  WaitFilters,
  WaitTask,
} from './tasks.js'

export type { InboxData, InboxOptions, MessageData, WaitFilters } from './tasks.js'

export interface WaitOptions extends WaitFilters {
  /** Milliseconds to wait; 30,000 by default. */
  timeout?: number
}

/** An inbox that `mayflyInbox` has returned. */
type InboxReference = Pick<InboxData, 'id' | 'password'>

declare global {
  // Cypress' types are a namespace, and its parameters must be repeated.
  // eslint-disable-next-line @typescript-eslint/no-namespace
  namespace Cypress {
    // eslint-disable-next-line @typescript-eslint/no-unused-vars
    interface Chainable<Subject> {
      /** Creates an inbox with a new address. */
      mayflyInbox(options?: InboxOptions): Chainable<InboxData>
      /** The first message that matches: one that is there, or the next to arrive. Fails if none arrives in time. */
      mayflyWaitFor(inbox: InboxReference, options?: WaitOptions): Chainable<MessageData>
      /** The most likely one-time code of the first message that matches and has a code. */
      mayflyWaitForCode(inbox: InboxReference, options?: WaitOptions): Chainable<string>
      /** The address of the first link that contains a text, or matches an expression, in its address or its text. */
      mayflyWaitForLink(
        inbox: InboxReference,
        pattern?: string | RegExp,
        options?: WaitOptions,
      ): Chainable<string>
    }
  }
}

const DEFAULT_TIMEOUT_MS = 30_000
/** The task ends after the wait, so that its error is shown: it lists the mail that arrived. */
const MARGIN_MS = 10_000

Cypress.Commands.add('mayflyInbox', (options = {}) => {
  const task: CreateTask = { options, titlePath: Cypress.currentTest.titlePath }
  return cy.task<InboxData>('mayflyInbox', task)
})

Cypress.Commands.add('mayflyWaitFor', (inbox, options) => wait<MessageData>('mayflyWaitFor', inbox, options))

Cypress.Commands.add('mayflyWaitForCode', (inbox, options) =>
  wait<string>('mayflyWaitForCode', inbox, options),
)

Cypress.Commands.add('mayflyWaitForLink', (inbox, pattern = '', options = {}) => {
  const json = typeof pattern === 'string' ? pattern : { source: pattern.source, flags: pattern.flags }
  return wait<string>('mayflyWaitForLink', inbox, options, json)
})

function wait<Result>(
  task: string,
  { id, password }: InboxReference,
  { timeout = DEFAULT_TIMEOUT_MS, ...filters }: WaitOptions = {},
  pattern?: Pattern,
): Cypress.Chainable<Result> {
  const request: WaitTask = { id, password, filters, timeout, pattern }
  return cy.task<Result>(task, request, { timeout: timeout + MARGIN_MS })
}
