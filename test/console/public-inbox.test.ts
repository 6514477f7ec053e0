import type { Browser, Page } from 'playwright-core'
import { startBrowser } from '#test/harness/browser.js'
import { mail, send } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { describeWith } from '#test/harness/tools.js'

/** What a visitor without an account does, in Chromium. */
describeWith('chromium')('the page of the public inbox', () => {
  let mayfly: Mayfly
  let browser: Browser
  let page: Page
  let errors: string[]
  let visitors = 0

  beforeAll(async () => {
    mayfly = await startMayfly({
      env: {
        MAYFLY_PUBLIC_INBOX: 'true',
        MAYFLY_PUBLIC_INBOXES_PER_ADDRESS: '2',
        MAYFLY_TRUSTED_PROXIES: '1',
        MAYFLY_ABUSE_CONTACT: 'abuse@mayfly.test',
      },
    })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await mayfly.dispose()
  })
  beforeEach(async () => {
    // Each test is another visitor, with limits of its own.
    visitors += 1
    const context = await browser.newContext({
      extraHTTPHeaders: { 'x-forwarded-for': `198.51.100.${visitors}` },
    })
    page = await context.newPage()
    errors = []
    page.on('pageerror', (error) => errors.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text())
    })
    await page.goto(mayfly.url)
  })
  afterEach(() => page.context().close())

  /** The address that the page shows, once it is another one than that. */
  async function addressAfter(last = ''): Promise<string> {
    const shown = page.locator('.address code').filter({ hasText: '@', hasNotText: last || 'none' })
    return (await shown.textContent()) ?? ''
  }

  it('shows an address at once, its mail as it arrives, a new address, and the first one on the way back', async () => {
    const first = await addressAfter()
    await send(mayfly, first, mail('Welcome', 'Your code is 493201.'))
    const shown = page.getByRole('tabpanel').getByText('Your code is 493201.')
    await shown.waitFor()
    await page.reload()
    await shown.waitFor()

    await page.getByLabel('Lifetime').selectOption('A day')
    await page.getByRole('button', { name: 'New address' }).click()
    const second = await addressAfter(first)
    await page.getByText('ends in 23 h').waitFor()
    await page.getByText('No mail yet.').waitFor()
    await send(mayfly, second, mail('For the second'))
    await page.getByRole('link', { name: /For the second/ }).waitFor()

    await page.goBack()
    expect(await addressAfter(second)).toBe(first)
    await page.getByRole('link', { name: /Welcome/ }).waitFor()
    expect(errors).toEqual([])
  })

  it('erases the inbox, and says why there is no other one when too many were made', async () => {
    const first = await addressAfter()
    await page.getByRole('button', { name: 'Erase now' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Erase now' }).click()
    await page.getByText('This inbox and its mail have been erased.').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await expect(send(mayfly, first, mail('Too late'))).rejects.toThrow('550')
    const create = page.getByRole('button', { name: 'New address' })
    await create.click()
    await addressAfter(first)
    await create.click()
    await page.getByText('The limit of 2 new inboxes an hour for your IP address is reached.').waitFor()
    await page.getByRole('link', { name: 'abuse@mayfly.test' }).waitFor()
  })
})
