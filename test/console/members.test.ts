import type { Browser, Page } from 'playwright-core'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import { openLink, openView, startBrowser, type ConsolePage } from '#test/harness/browser.js'
import { call, createInbox, mail, messagesOf, send, type Target } from '#test/harness/client.js'
import { NO_DNS } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { invite, join, type Access } from '#test/harness/members.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { ADMIN_VIEWS, AUDITOR_VIEWS, linksOf, MAIL_VIEWS, VIEWS_OF_ALL, viewsIn } from './sidebar.js'

const READS_MAIL = ['content:read']
describeWith('chromium')('the members of an account in the console', () => {
  let mayfly: Mayfly
  let browser: Browser
  let open: ConsolePage[] = []

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true, hasWebhooks: true, env: NO_DNS })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await mayfly.dispose()
  })
  afterEach(async () => {
    await Promise.all(open.map(({ page }) => page.context().close()))
    open = []
  })

  async function openAs(link: string): Promise<ConsolePage> {
    const opened = await openLink(browser, link)
    open.push(opened)
    return opened
  }

  /** The admin key of a new account, whose environment `production` has an inbox with a mail. */
  async function newAccount(): Promise<Target> {
    const admin = withKey(mayfly, (await openAccount(mayfly)).key)
    const user = withKey(mayfly, await issueKey(admin, { environment: 'production' }))
    const inbox = await createInbox(user, { name: 'Sign-up' })
    await send(mayfly, inbox.address, mail('Your code', 'Your code is 493201.'))
    await messagesOf(user, inbox.id, 1)
    return admin
  }

  async function openOwner(admin: Target): Promise<ConsolePage> {
    const owner = await openAs((await invite(admin, { role: 'owner' })).url)
    await owner.page.getByRole('link', { name: 'Members', exact: true }).click()
    await owner.page.getByRole('heading', { name: 'Members' }).waitFor()
    return owner
  }

  /** The row of a member or an invitation. */
  const row = (page: Page, email: string) => page.getByRole('row').filter({ hasText: email })

  /** Makes the link of the open dialog, and closes it. */
  async function createLink(page: Page): Promise<string> {
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Create link' }).click()
    const link = (await dialog.locator('[data-secret]').textContent()) ?? ''
    await dialog.getByRole('button', { name: 'Close', exact: true }).click()
    return link
  }

  it('join with the link of an owner, issue personal keys, and lose both when they are removed', async () => {
    const owner = await openOwner(await newAccount())
    await owner.page
      .getByRole('navigation')
      .getByText(/^person\d+@example\.com$/)
      .waitFor()
    await owner.page.getByRole('button', { name: 'Invite', exact: true }).click()
    await owner.page.getByLabel('Email').fill('dev@example.com')
    await owner.page.getByRole('radio', { name: 'developer' }).check()
    const link = await createLink(owner.page)
    await row(owner.page, 'dev@example.com').getByRole('button', { name: 'New link' }).waitFor()

    const developer = await openAs(link)
    await developer.page.getByRole('navigation').getByRole('link', { name: 'Sign-up' }).waitFor()
    expect(await linksOf(developer.page)).not.toContainEqual(expect.stringContaining('/members'))
    await developer.page.getByRole('link', { name: 'API keys', exact: true }).click()
    await developer.page.getByText('There are no keys.').waitFor()
    await developer.page.getByRole('button', { name: 'Create key' }).click()
    const dialog = developer.page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('my laptop')
    expect(await dialog.getByLabel('Environment').inputValue()).toBe('production')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    const secret = (await dialog.locator('[data-secret]').textContent()) ?? ''
    const holder = { ...mayfly, apiKey: secret }
    expect((await call(holder, 'GET', '/v1/inboxes')).status).toBe(200)
    expect(developer.errors).toEqual([])

    await owner.page.getByRole('link', { name: 'API keys', exact: true }).click()
    await row(owner.page, 'my laptop').filter({ hasText: 'dev@example.com' }).waitFor()
    await owner.page.getByRole('link', { name: 'Members', exact: true }).click()
    await row(owner.page, 'dev@example.com').getByRole('button', { name: 'Remove' }).click()
    await owner.page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await owner.page.getByText('No service key that this member issued is still valid.').waitFor()
    await owner.page.getByRole('button', { name: 'Close', exact: true }).click()
    await row(owner.page, 'dev@example.com').waitFor({ state: 'detached' })
    expect(owner.errors).toEqual([])

    await developer.page.getByText('Your session has ended.').waitFor()
    await until('the key to end', async () => (await call(holder, 'GET', '/v1/inboxes')).status === 401)
  })

  it('are changed, sign in again with a link of an owner, and leave their service keys', async () => {
    const admin = await newAccount()
    const { member, target } = await join(admin, { role: 'admin' })
    await issueKey(target, { name: 'Nightly' })
    const { page, errors } = await openOwner(admin)
    await row(page, member.email).getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog').getByRole('listitem').filter({ hasText: 'Nightly' }).waitFor()
    await page.getByRole('dialog').getByRole('link', { name: 'Show the keys' }).click()
    await row(page, 'Nightly').waitFor()

    const { member: other } = await join(admin, { role: 'developer' })
    await page.getByRole('link', { name: 'Members', exact: true }).click()
    await row(page, other.email).getByRole('button', { name: 'Change' }).click()
    await page.getByRole('radio', { name: 'viewer' }).check()
    await page.getByRole('checkbox', { name: 'production' }).check()
    await page.getByRole('button', { name: 'Save' }).click()
    await row(page, other.email).filter({ hasText: 'viewer' }).filter({ hasText: 'production' }).waitFor()
    await row(page, other.email).getByRole('button', { name: 'Sign-in link' }).click()
    const viewer = await openAs(await createLink(page))
    await viewer.page.getByRole('navigation').getByRole('link', { name: 'Sign-up' }).click()
    await viewer.page.getByRole('heading', { name: 'Your code' }).waitFor()
    for (const name of ['Create inbox', 'Edit', 'Share', 'Delete all', 'Delete the inbox'])
      expect(await viewer.page.getByRole('button', { name }).count()).toBe(0)
    expect([...errors, ...viewer.errors]).toEqual([])
  })

  it('read the audit log, with proofs and certificates of erasure, unless they are restricted', async () => {
    const admin = await newAccount()
    const restricted = await openAs(
      (await invite(admin, { role: 'auditor', environments: ['production'] })).url,
    )
    expect(await linksOf(restricted.page)).not.toContainEqual(expect.stringContaining('/audit'))

    const user = withKey(mayfly, await issueKey(admin, { environment: 'production' }))
    const { id } = await createInbox(user)
    await call(user, 'DELETE', `/v1/inboxes/${id}`)
    const { page, errors } = await openAs((await invite(admin, { role: 'auditor' })).url)
    await page.getByRole('link', { name: 'Audit log', exact: true }).click()
    await page.getByText(/^\d+ events, signed/).waitFor()
    await row(page, 'inbox.erased').waitFor()
    await page.getByLabel('Type').selectOption('inbox.erased')
    await row(page, id)
      .getByRole('button', { name: `Erasure of ${id}` })
      .click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('"does_not_prove"').waitFor()
    await dialog.getByRole('button', { name: 'Close', exact: true }).click()
    await page.getByLabel('Type').selectOption('')
    await row(page, id).first().getByRole('link', { name: id }).click()
    await until('the events of the inbox', async () => (await page.getByRole('row').count()) === 4)
    await row(page, 'inbox.created')
      .getByRole('button', { name: /^Proof of event \d+$/ })
      .click()
    await dialog.getByText('c2sp.org/tlog-proof@v1').waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByRole('button', { name: 'Save' }).click(),
    ])
    expect(download.suggestedFilename()).toMatch(/^evt_\w+\.tlog-proof$/)
    expect([...errors, ...restricted.errors]).toEqual([])
  })

  it('are invited again with a new link, or not at all', async () => {
    const admin = await newAccount()
    const first = await invite(admin, { role: 'viewer' })
    const second = await invite(admin, { role: 'viewer' })
    const { page } = await openOwner(admin)
    await row(page, first.email).getByRole('button', { name: 'New link' }).click()
    const link = await createLink(page)
    await row(page, second.email).getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row(page, second.email).waitFor({ state: 'detached' })
    for (const invalid of [first.url, second.url]) {
      const refused = await openAs(invalid)
      await refused.page.getByRole('alert').waitFor()
    }
    const viewer = await openAs(link)
    await viewer.page.getByRole('heading', { name: 'All mail', level: 1 }).waitFor()
  })

  it.each<[Access, first: string, views: string[]]>([
    [{ role: 'owner' }, 'All mail', [...MAIL_VIEWS, ...ADMIN_VIEWS, 'webhooks']],
    [{ role: 'admin', permissions: [] }, 'Domains', ADMIN_VIEWS],
    [{ role: 'developer' }, 'All mail', [...MAIL_VIEWS, ...VIEWS_OF_ALL]],
    [{ role: 'viewer' }, 'All mail', [...MAIL_VIEWS, ...VIEWS_OF_ALL]],
    [{ role: 'auditor' }, 'API keys', AUDITOR_VIEWS],
    [{ role: 'auditor', permissions: READS_MAIL }, 'All mail', [...MAIL_VIEWS, ...AUDITOR_VIEWS]],
  ])('see the views of %j, and nothing that is refused', async (access, first, views) => {
    const { page, errors } = await openAs((await invite(await newAccount(), access)).url)
    await page.getByRole('heading', { name: first, level: 1 }).waitFor()
    expect(await viewsIn(page)).toEqual(views.toSorted())
    for (const link of await linksOf(page)) await openView(page, mayfly.url + link)
    expect(errors).toEqual([])
  })
})
