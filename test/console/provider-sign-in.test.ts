import type { Browser, Page } from 'playwright-core'
import { issueKey, openAccount, withKey, type AccountJson } from '#test/harness/accounts.js'
import { openLink, startBrowser, type ConsolePage } from '#test/harness/browser.js'
import { call, createInbox } from '#test/harness/client.js'
import { NO_DNS } from '#test/harness/dns.js'
import {
  providersFile,
  startIdentityProvider,
  type IdentityProvider,
} from '#test/harness/identity-provider.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { invite } from '#test/harness/members.js'
import { expectProblem } from '#test/harness/problem.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { AUDITOR_VIEWS, MAIL_VIEWS, VIEWS_OF_ALL, viewsIn } from './sidebar.js'

/** Without a session, the page is answered 401; and the pages of the provider load fonts that are not there. */
const isScriptError = (text: string) => !text.startsWith('Failed to load resource')

describeWith('chromium')('sign-in to the console with an identity provider', () => {
  let provider: IdentityProvider
  let mayfly: Mayfly
  let browser: Browser

  beforeAll(async () => {
    provider = await startIdentityProvider()
    const providers = { acme: { ...provider.settings, title: 'Acme' } }
    mayfly = await startMayfly({ env: { ...NO_DNS, ...(await providersFile(providers)) } })
    provider.accept(mayfly.url, 'acme')
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await mayfly.dispose()
    provider.dispose()
  })

  /** Fills in the pages of the provider. */
  async function passProvider(page: Page, login: string): Promise<void> {
    await page.getByPlaceholder('Enter any login').fill(login)
    await page.getByPlaceholder('and password').fill('x')
    await page.getByRole('button', { name: 'Sign-in' }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
  }

  async function signIn(login: string): Promise<ConsolePage> {
    const opened = await openLink(browser, `${mayfly.url}/console`)
    await opened.page.getByRole('button', { name: 'Sign in with Acme' }).click()
    await passProvider(opened.page, login)
    return opened
  }

  const linkTo = (page: Page, name: string) =>
    page.getByRole('navigation').getByRole('link', { name, exact: true })
  const row = (page: Page, email: string) => page.getByRole('row').filter({ hasText: email })

  it('is for those who are invited, and ends with their membership', async () => {
    for (const name of ['owner', 'developer', 'auditor', 'stranger']) {
      provider.people.set(name, { email: `${name}@example.com`, email_verified: true })
    }
    const admin = withKey(mayfly, (await openAccount(mayfly, { name: 'Example Ltd' })).key)
    const user = withKey(mayfly, await issueKey(admin, { environment: 'production' }))
    await createInbox(user, { name: 'Sign-up' })
    const { url } = await invite(admin, { role: 'owner' }, { email: 'owner@example.com' })

    // The owner has joined with a link, connects the provider, and requires it of everybody.
    const owner = await openLink(browser, url)
    await linkTo(owner.page, 'Account').click()
    await owner.page.getByRole('button', { name: 'Connect Acme' }).click()
    await passProvider(owner.page, 'owner')
    await owner.page.getByText(`You sign in with ${provider.issuer}.`).waitFor()
    await owner.page.getByRole('checkbox', { name: 'Everybody must sign in' }).click()
    await until('the setting', async () => {
      return (
        (await call<AccountJson & { sign_in: string }>(admin, 'GET', '/v1/account')).body.sign_in ===
        'provider'
      )
    })
    await owner.page.getByRole('button', { name: 'Change the quota: Active inboxes' }).click()
    await owner.page.getByRole('dialog').getByLabel('Limit').fill('2')
    await owner.page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await owner.page.getByText('Active inboxes: 1 of 2').waitFor()
    await linkTo(owner.page, 'Members').click()
    for (const role of ['developer', 'auditor']) {
      await owner.page.getByRole('button', { name: 'Invite', exact: true }).click()
      await owner.page.getByLabel('Email').fill(`${role}@example.com`)
      await owner.page.getByRole('radio', { name: role }).check()
      await owner.page.getByRole('dialog').getByRole('button', { name: 'Create link' }).click()
      await owner.page.getByRole('dialog').locator('[data-secret]').waitFor()
      await owner.page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }).click()
    }

    const stranger = await signIn('stranger')
    await stranger.page.getByText('You are not a member of any account.').waitFor()
    expect(stranger.page.url()).toBe(`${mayfly.url}/console`)

    const developer = await signIn('developer')
    await linkTo(developer.page, 'Sign-up').waitFor()
    expect(await viewsIn(developer.page)).toEqual([...MAIL_VIEWS, ...VIEWS_OF_ALL].toSorted())
    await linkTo(developer.page, 'API keys').click()
    await developer.page.getByRole('button', { name: 'Create key' }).click()
    const dialog = developer.page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('my laptop')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    const personal = { ...mayfly, apiKey: (await dialog.locator('[data-secret]').textContent()) ?? '' }
    expect((await call(personal, 'POST', '/v1/inboxes')).status).toBe(201)
    const refused = await call(personal, 'POST', '/v1/inboxes')
    expectProblem(refused, { status: 429, code: 'quota-exceeded', detail: /2/ })

    const auditor = await signIn('auditor')
    await linkTo(auditor.page, 'Usage').waitFor()
    expect(await viewsIn(auditor.page)).toEqual(AUDITOR_VIEWS.toSorted())

    await owner.page.reload()
    await row(owner.page, 'developer@example.com').getByText('signs in with 127.0.0.1').waitFor()
    await row(owner.page, 'developer@example.com').getByRole('button', { name: 'Remove' }).click()
    await owner.page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await developer.page.getByText('Your session has ended.').waitFor()
    await until(
      'the key to end',
      async () => (await call(personal, 'GET', '/v1/inboxes')).status === 401,
      1_000,
    )
    expect((await call(user, 'GET', '/v1/inboxes')).status).toBe(200)

    await linkTo(auditor.page, 'Activity').click()
    await row(auditor.page, 'member.removed').filter({ hasText: 'owner@example.com' }).waitFor()
    await row(auditor.page, 'account.sign-in-set').getByText('sign_in: any → provider').waitFor()
    await row(auditor.page, 'account.quota-set').getByText('quotas.inboxes: 2').waitFor()
    await row(auditor.page, 'account.api-key-issued').getByText('name: my laptop').waitFor()
    await row(auditor.page, 'member.invited').filter({ hasText: 'owner@example.com' }).first().waitFor()

    // Signing out ends the session at the provider too, which asks first.
    await auditor.page.getByRole('button', { name: 'Sign out' }).click()
    await auditor.page.getByRole('button', { name: 'Yes, sign me out' }).click()
    await auditor.page.getByRole('button', { name: 'Sign in with Acme' }).click()
    await auditor.page.getByPlaceholder('Enter any login').waitFor()
    for (const { errors } of [owner, developer, auditor]) expect(errors.filter(isScriptError)).toEqual([])
  }, 120_000)

  it('switches between the accounts of a person', async () => {
    provider.people.set('ana', { email: 'ana@example.com', email_verified: true })
    for (const name of ['First Ltd', 'Second Ltd']) {
      const admin = withKey(mayfly, (await openAccount(mayfly, { name })).key)
      await invite(admin, { role: 'owner' }, { email: 'ana@example.com' })
    }
    const { page, errors } = await signIn('ana')
    const choice = page.getByRole('navigation').getByLabel('Account', { exact: true })
    const selected = () => choice.locator('option:checked').textContent()
    await choice.waitFor()
    expect(await selected()).toBe('First Ltd')
    await choice.selectOption('Second Ltd')
    await page.waitForURL(/environment=/)
    await until('the other account', async () => (await selected()) === 'Second Ltd')
    expect(errors.filter(isScriptError)).toEqual([])
  }, 60_000)
})
