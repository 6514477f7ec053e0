import { Mayfly, type Filters, type Inbox, type Schemas } from '@mayfly/client'
import { testLabels } from '@mayfly/client/test-labels'

/** The properties of an inbox, with the password of a protected one. */
export type InboxData = Schemas['Inbox'] & { password?: string | undefined }

/** The properties of a message. `cursor` is the position after it, for `since`. */
export type MessageData = Schemas['Message'] & { cursor: string | null }

export interface InboxOptions {
  /** The lifetime, such as `30m`; 1 hour by default. */
  duration?: string
  name?: string
  /** Besides `run` and `title`, which each inbox has. */
  labels?: Record<string, string>
  passwordProtected?: boolean
}

export interface WaitFilters extends Filters {
  /** Only messages after this position. */
  since?: string
}

/** A text, or an expression as JSON. */
export type Pattern = string | { source: string; flags: string }

/** What the commands send to the tasks. */
export interface CreateTask {
  options: InboxOptions
  titlePath: string[]
}
export interface WaitTask {
  id: string
  password: string | undefined
  filters: WaitFilters
  timeout: number
  pattern: Pattern | undefined
}

// Cypress takes a type with an index signature, which an interface does not have.
type Tasks = {
  mayflyInbox: (task: CreateTask) => Promise<InboxData>
  mayflyWaitFor: (task: WaitTask) => Promise<MessageData>
  mayflyWaitForCode: (task: WaitTask) => Promise<string>
  mayflyWaitForLink: (task: WaitTask) => Promise<string>
}

/** Tests do not delete their inboxes, so that their mail can be read after a failure. */
const DEFAULT_DURATION = '1h'

/**
 * Adds the tasks that the commands use: `setupNodeEvents: mayflyTasks`. Reads MAYFLY_URL and MAYFLY_KEY from the
 * environment of Cypress; the key does not reach the browser.
 */
export function mayflyTasks(
  on: (action: 'task', tasks: Tasks) => void,
  config: { env: Record<string, unknown> },
): void {
  if ('MAYFLY_KEY' in config.env) {
    throw new Error(
      'MAYFLY_KEY is in the `env` of Cypress, which every page can read. Remove it there, in cypress.env.json and in ' +
        'CYPRESS_MAYFLY_KEY, and set it as an environment variable.',
    )
  }
  const mayfly = new Mayfly()
  const open = ({ id, password }: WaitTask): Promise<Inbox> => mayfly.inboxes.get(id, { password })

  on('task', {
    async mayflyInbox({ options, titlePath }) {
      const labels = { ...testLabels(titlePath), ...options.labels }
      const inbox = await mayfly.inboxes.create({ duration: DEFAULT_DURATION, ...options, labels })
      return { ...(toJson(inbox) as Schemas['Inbox']), password: inbox.password }
    },

    async mayflyWaitFor(task) {
      const inbox = await open(task)
      const message = await inbox.waitForMessage({ ...task.filters, timeoutMs: task.timeout })
      return toJson(message) as MessageData
    },

    async mayflyWaitForCode(task) {
      const inbox = await open(task)
      return inbox.waitForCode({ ...task.filters, timeoutMs: task.timeout })
    },

    async mayflyWaitForLink(task) {
      const { pattern = '', filters, timeout } = task
      const inbox = await open(task)
      const expression = typeof pattern === 'string' ? pattern : new RegExp(pattern.source, pattern.flags)
      return inbox.waitForLink(expression, { ...filters, timeoutMs: timeout })
    },
  })
}

/** The properties without the methods. Only JSON reaches the browser. */
function toJson(value: object): unknown {
  return JSON.parse(JSON.stringify(value))
}
