import { Mayfly, type BodyOptions } from '@mayfly/client'
import { runName, testLabels } from '@mayfly/client/test-labels'
import { test as base } from '@playwright/test'
import { withPageMessages, type PageInbox } from './inbox.js'
import { attachMail } from './report.js'

export { expect, type ReceivedOptions } from './expect.js'
export type { PageInbox, PageMessage } from './inbox.js'
export type { RenderOptions } from './mail-html.js'

export interface MayflyFixtures {
  /** An inbox of this test, with the labels `run`, `worker` and `title`. Deleted after a pass, kept after a failure. */
  inbox: PageInbox
  /** Creates more inboxes of the same kind. */
  inboxes: { create(options?: BodyOptions<'CreateInbox'>): Promise<PageInbox> }
}

export interface MayflyWorkerFixtures {
  /** The client, for MAYFLY_URL and MAYFLY_KEY. */
  mayfly: Mayfly
}

// Playwright loads the test files before it starts the workers, which inherit the name.
runName()

const MAX_WAIT_MS = 30_000
/** To delete inboxes, or to attach their mail, besides the time of the test. */
const CLEANUP_TIMEOUT_MS = 60_000

/** Playwright's `test`, with inboxes. */
export const test = base.extend<MayflyFixtures, MayflyWorkerFixtures>({
  mayfly: [
    async ({}, use, { project }) => {
      // Waits end before the test does, because their error lists the mail that arrived.
      const timeoutMs = project.timeout === 0 ? MAX_WAIT_MS : Math.min(MAX_WAIT_MS, project.timeout / 2)
      await use(new Mayfly({ timeoutMs }))
    },
    { scope: 'worker' },
  ],

  inboxes: [
    async ({ mayfly }, use, testInfo) => {
      const created: PageInbox[] = []
      const labels = { ...testLabels(testInfo.titlePath), worker: String(testInfo.workerIndex) }
      await use({
        async create(options = {}) {
          const request = { ...options, labels: { ...labels, ...options.labels } }
          const inbox = withPageMessages(await mayfly.inboxes.create(request))
          created.push(inbox)
          return inbox
        },
      })
      if (testInfo.status === testInfo.expectedStatus)
        await Promise.all(created.map((inbox) => inbox[Symbol.asyncDispose]()))
      else await attachMail(testInfo, created)
    },
    { timeout: CLEANUP_TIMEOUT_MS },
  ],

  inbox: async ({ inboxes }, use) => {
    await use(await inboxes.create())
  },
})
