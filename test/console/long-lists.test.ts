import { createTransport } from 'nodemailer'
import pLimit from 'p-limit'
import type { Browser, Page } from 'playwright-core'
import { openConsole, startBrowser } from '#test/harness/browser.js'
import { createInbox, mail, messagesOf, send } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { describeWith } from '#test/harness/tools.js'

const COUNT = 10_000
/** Creating as many takes long beside other suites. */
const WITHIN_MS = 400_000
/** More would mean that rows out of view are in the page. */
const MAX_ROWS = 80

describeWith('chromium')('long lists in the console', () => {
  let mayfly: Mayfly
  let browser: Browser

  beforeAll(async () => {
    mayfly = await startMayfly({ engine: 'embedded' })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await mayfly.dispose()
  })

  /** Scrolls to the end until a text is in view. Resolves with the most rows that were in the page. */
  async function scrollTo(page: Page, wanted: string): Promise<number> {
    let most = 0
    await page.locator('.virtual-list').hover()
    // Without pauses, because the list loads its pages one by one.
    while (!(await page.locator('.virtual-list').getByText(wanted, { exact: true }).isVisible())) {
      await page.mouse.wheel(0, 1_000_000)
      most = Math.max(most, await page.locator('.virtual-list li').count())
    }
    return most
  }

  async function sendMany(to: string): Promise<void> {
    const server = { host: '127.0.0.1', port: mayfly.smtpPort, ignoreTLS: true }
    const transport = createTransport({ ...server, pool: true, maxConnections: 20, maxMessages: Infinity })
    try {
      const envelope = { from: 'sender@example.com', to }
      const mails = Array.from({ length: COUNT }, (_, index) => mail(`mail ${index}`))
      await Promise.all(mails.map((raw) => transport.sendMail({ envelope, raw })))
    } finally {
      transport.close()
    }
  }

  it(
    `shows ${COUNT} inboxes with few rows in the page`,
    async () => {
      const limit = pLimit(50)
      await createInbox(mayfly, { name: 'the oldest' })
      await Promise.all(Array.from({ length: COUNT }, () => limit(() => createInbox(mayfly))))
      await createInbox(mayfly, { name: 'the newest' })
      const { page, errors } = await openConsole(browser, mayfly)
      await page.goto(`${mayfly.url}/console/inboxes`)
      await page.locator('.virtual-list').getByText('the newest').waitFor()
      expect(await scrollTo(page, 'the oldest')).toBeLessThan(MAX_ROWS)
      expect(errors).toEqual([])
      await page.context().close()
    },
    WITHIN_MS,
  )

  it(
    `shows ${COUNT} messages with few rows in the page`,
    async () => {
      const inbox = await createInbox(mayfly, { name: 'busy' })
      await send(mayfly, inbox.address, mail('the oldest'))
      await sendMany(inbox.address)
      await messagesOf(mayfly, inbox.id, 1)
      const { page, errors } = await openConsole(browser, mayfly)
      await page.getByRole('navigation').getByRole('link', { name: 'busy' }).click()
      await send(mayfly, inbox.address, mail('the newest'))
      await page.locator('.virtual-list').getByText('the newest').waitFor()
      expect(await scrollTo(page, 'the oldest')).toBeLessThan(MAX_ROWS)
      expect(errors).toEqual([])
      await page.context().close()
    },
    WITHIN_MS,
  )
})
