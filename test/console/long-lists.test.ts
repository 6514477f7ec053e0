import pLimit from 'p-limit'
import type { Browser, Page } from 'playwright-core'
import { openConsole, startBrowser } from '#test/harness/browser.js'
import { createInbox, mail, messagesOf, send } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'

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
    await until(
      `${wanted} in view`,
      async () => {
        await page.mouse.wheel(0, 1_000_000)
        most = Math.max(most, await page.getByRole('listitem').count())
        return page.getByText(wanted, { exact: true }).isVisible()
      },
      WITHIN_MS / 2,
    )
    return most
  }

  it(
    `shows ${COUNT} inboxes with few rows in the page`,
    async () => {
      const limit = pLimit(50)
      await createInbox(mayfly, { name: 'the oldest' })
      await Promise.all(Array.from({ length: COUNT }, () => limit(() => createInbox(mayfly))))
      await createInbox(mayfly, { name: 'the newest' })
      const { page, errors } = await openConsole(browser, mayfly)
      await page.getByText('the newest').waitFor()
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
      const limit = pLimit(20)
      await send(mayfly, inbox.address, mail('the oldest'))
      await Promise.all(
        Array.from({ length: COUNT }, (_, index) =>
          limit(() => send(mayfly, inbox.address, mail(`mail ${index}`))),
        ),
      )
      await messagesOf(mayfly, inbox.id, 1)
      const { page, errors } = await openConsole(browser, mayfly)
      await page.getByRole('link', { name: 'busy' }).click()
      await send(mayfly, inbox.address, mail('the newest'))
      await page.getByText('the newest').waitFor()
      expect(await scrollTo(page, 'the oldest')).toBeLessThan(MAX_ROWS)
      expect(errors).toEqual([])
      await page.context().close()
    },
    WITHIN_MS,
  )
})
