import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { openConsole, openView, startBrowser } from '#test/harness/browser.js'
import { call, createInbox, mail, messagesOf, send } from '#test/harness/client.js'
import { NO_DNS } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { invite, join } from '#test/harness/members.js'
import { describeWith } from '#test/harness/tools.js'
import { untilCounted } from '#test/harness/usage.js'

/** Rules of WCAG 2.2, levels A and AA. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

const SCREENS: readonly (readonly [string, BrowserContextOptions])[] = [
  ['on a desktop', { viewport: { width: 1280, height: 800 } }],
  ['in the dark on a phone', { viewport: { width: 390, height: 800 }, colorScheme: 'dark' }],
]

describeWith('chromium', 'clickhouse')('the accessibility of the console', () => {
  let mayfly: Mayfly
  let browser: Browser
  let axe: string
  let paths: Record<string, string>

  beforeAll(async () => {
    axe = await readFile(createRequire(import.meta.url).resolve('axe-core'), 'utf8')
    mayfly = await startMayfly({
      engine: 'embedded',
      hasAnalytics: true,
      hasWebhooks: true,
      env: { MAYFLY_PUBLIC_INBOX: 'true', MAYFLY_ABUSE_CONTACT: 'abuse@mayfly.test', ...NO_DNS },
    })
    browser = await startBrowser()
    const inbox = await createInbox(mayfly, { name: 'Sign-up', labels: { run: '42' } })
    await send(mayfly, inbox.address, mail('Your code', 'Your code is 493201. See https://app.example/'))
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    await expect(send(mayfly, 'sign-up@mayfly.test', mail('A typo'))).rejects.toThrow('550')
    const { body: webhook } = await call<{ id: string }>(mayfly, 'POST', '/v1/webhooks', {
      body: { url: 'https://app.example/hook' },
    })
    await call(mayfly, 'POST', '/v1/domains', {
      body: { name: 'staging.example.com', environment: 'development' },
    })
    await join(mayfly, { role: 'owner' })
    await invite(mayfly, { role: 'viewer' })
    await untilCounted(
      async () => (await call<{ mails: number }>(mayfly, 'GET', '/v1/usage/report?label=run:42')).body,
      ({ mails }) => mails === 1,
    )
    paths = {
      'all mail': '/console/mail',
      inboxes: '/console/inboxes',
      'an inbox': `/console/inboxes/${inbox.id}`,
      'a message': `/console/inboxes/${inbox.id}?message=${message?.id}`,
      'a search': '/console/mail?q=from:app+has:code',
      'refused mail': '/console/refused',
      'SMTP settings': '/console/smtp',
      domains: '/console/domains',
      keys: '/console/keys',
      members: '/console/members',
      webhooks: '/console/webhooks',
      'a webhook': `/console/webhooks/${webhook.id}`,
      usage: '/console/usage?label=run:42',
      activity: '/console/activity',
      'the audit log': '/console/audit',
      account: '/console/account',
      status: '/console/status',
      'a page that does not exist': '/console/other',
      'the public inbox': '/',
      'the API reference': '/docs',
      'an operation in the API reference': '/docs#?route=post-/v1/inboxes',
    }
  })
  afterAll(async () => {
    await browser.close()
    await mayfly.dispose()
  })

  /** What axe finds: the rule and the elements that break it. */
  async function violations(page: Awaited<ReturnType<typeof openConsole>>['page']): Promise<string[]> {
    await page.evaluate(axe)
    const options = JSON.stringify({ runOnly: RULES })
    const found = await page.evaluate<{ id: string; nodes: { html: string }[] }[]>(
      `axe.run(document, ${options}).then(({ violations }) => violations)`,
    )
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(', ')}`)
  }

  it.each(SCREENS)('breaks no rule of WCAG 2.2 AA %s', async (_, screen) => {
    const { page } = await openConsole(browser, mayfly, screen)
    const found: Record<string, string[]> = {}
    for (const [name, path] of Object.entries(paths)) {
      await openView(page, mayfly.url + path)
      found[name] = await violations(page)
    }
    await openView(page, `${mayfly.url}/console/inboxes`)
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    found['the keys'] = await violations(page)
    await page.keyboard.press('Escape')
    const menu = page.getByRole('button', { name: 'Menu' })
    if (await menu.isVisible()) {
      await menu.click()
      await page.locator('.sidebar :focus').waitFor()
      found['the menu'] = await violations(page)
      await page.keyboard.press('Escape')
      await page.locator('.menu-button:focus').waitFor()
      await menu.click()
    }
    await page.getByRole('button', { name: 'Create inbox' }).click()
    await page.getByRole('dialog').waitFor()
    found['a dialog'] = await violations(page)
    await openView(page, `${mayfly.url}/console/members?dialog=create`)
    await page.getByRole('dialog').waitFor()
    found['the invitation'] = await violations(page)
    await page.context().clearCookies()
    await openView(page, `${mayfly.url}/console`)
    found['signing in'] = await violations(page)
    expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, []])))
    await page.context().close()
  })

  it('can be used with the keyboard alone', async () => {
    const { page } = await openConsole(browser, mayfly)
    const focused = () => page.evaluate<string>('document.activeElement.textContent')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('view')
    for (let presses = 0; presses < 40 && (await focused()).trim() !== 'Create inbox'; presses += 1)
      await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('By keyboard')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'By keyboard' }).waitFor()
    await page.context().close()
  })
})
