import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { freePort } from '#infra/servers/ports.js'
import { openAccount, withKey } from '#test/harness/accounts.js'
import { newLink, openConsole, startBrowser, type ConsolePage } from '#test/harness/browser.js'
import { call, createInbox, mail, messagesOf, only, send } from '#test/harness/client.js'
import { NO_DNS } from '#test/harness/dns.js'
import { startEndpoint } from '#test/harness/endpoint.js'
import { engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { TcpProxy } from '#test/harness/tcp-proxy.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'

/** What a user does in the console, in Chromium. */
describeWith('chromium')('the console', () => {
  let mayfly: Mayfly
  let browser: Browser
  let open: ConsolePage[] = []

  beforeAll(async () => {
    mayfly = await startMayfly({
      hasAnalytics: true,
      hasWebhooks: true,
      // On the distributed engine, the API only knows the setting.
      env: {
        ...NO_DNS,
        MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
        MAYFLY_SMTP_PORT: engineUnderTest() === 'distributed' ? String(await freePort()) : '0',
      },
    })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await mayfly.dispose()
  })
  afterEach(async () => {
    const errors = open.flatMap((each) => each.errors)
    await Promise.all(open.map(({ page }) => page.context().close()))
    open = []
    expect(errors).toEqual([])
  })

  async function signedIn(options?: BrowserContextOptions): Promise<ConsolePage> {
    const opened = await openConsole(browser, mayfly, options)
    open.push(opened)
    return opened
  }
  const copied = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()')
  /** A mail in the list. */
  const row = (page: Page, text: string) => page.locator('.message-row').filter({ hasText: text })
  const openMail = (page: Page, subject: string) => row(page, subject).getByRole('link').click()
  /** An inbox in the sidebar. */
  const inboxLink = (page: Page, name: string) => page.getByRole('navigation').getByRole('link', { name })
  const newMail = (address: string, subject: string, text?: string) =>
    send(mayfly, address, mail(subject, text))

  it('creates an inbox, shows its mail as it arrives, and copies the code', async () => {
    const { page } = await signedIn()
    await page.getByRole('navigation').getByRole('button', { name: 'Create inbox' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Sign-up')
    await page.getByLabel('Labels').fill('run:42, team:web')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { name: 'Sign-up' }).waitFor()
    const address = (await page.locator('.inbox-heading .address code').textContent()) ?? ''

    await newMail(address, 'Your code', 'Your code is 493201.')
    await row(page, 'Your code').getByRole('button', { name: 'Copy the code 493201' }).click()
    expect(await copied(page)).toBe('493201')

    // The newest mail is open at once.
    await page.getByRole('tabpanel').getByText('Your code is 493201.').waitFor()
    await page.getByRole('tab', { name: 'Details' }).click()
    await page.getByRole('tabpanel').getByText('sender@example.com', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Copy as test' }).click()
    await page.getByText(`subject=Your code`).waitFor()
  })

  it('shows the faults of an environment and of an inbox', async () => {
    const faults = { body: [{ stage: 'after_accept', action: 'drop', every_n: 2 }] }
    const inbox = await createInbox(mayfly, { name: 'Faulty' })
    await call(mayfly, 'PUT', '/v1/environments/development/faults', faults)
    const { page } = await signedIn()
    await page
      .getByText('New inboxes of this environment get faults on purpose: drop at after_accept')
      .waitFor()
    await call(mayfly, 'DELETE', '/v1/environments/development/faults')
    await call(mayfly, 'PUT', `/v1/inboxes/${inbox.id}/faults`, faults)
    await inboxLink(page, 'Faulty').click()
    await page.getByText('This inbox has faults on purpose: drop at after_accept').waitFor()
  })

  it('adds domains, shows the DNS records that they need, and creates an inbox with a chosen address', async () => {
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Add domain' }).click()
    await page.getByRole('dialog', { name: 'Add domain' }).getByRole('button', { name: 'Cancel' }).click()
    expect(new URL(page.url()).search).toBe('?environment=development')
    await page.getByText('There are no domains.').waitFor()
    const add = async (name: string) => {
      await page.getByRole('button', { name: 'Add domain' }).click()
      await page.getByLabel('Domain', { exact: true }).fill(name)
      await page.getByRole('button', { name: 'Create', exact: true }).click()
    }
    await add('')
    await page.getByText('verified', { exact: true }).waitFor()
    const hosted = (await page.locator('.domain h2').textContent()) ?? ''

    const inbox = await createInbox(mayfly)
    await page.getByRole('button', { name: `Change ${hosted}` }).click()
    await page.getByLabel('is delivered to one inbox').check()
    await page.getByLabel('Inbox, by its id').fill(inbox.id)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('mail to other addresses is delivered to one inbox').waitFor()

    await add('staging.example.com')
    await page.getByText('waiting for DNS records').waitFor()
    await page.getByRole('button', { name: 'Copy _mayfly-challenge.staging.example.com' }).click()
    expect(await copied(page)).toBe('_mayfly-challenge.staging.example.com')
    await page.getByRole('button', { name: 'Delete staging.example.com' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('waiting for DNS records').waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Create inbox' }).click()
    await page.getByLabel('Address', { exact: true }).fill(`support@${hosted}`)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { name: `support@${hosted}` }).waitFor()
  })

  it('keeps what is open in the URL', async () => {
    const inbox = await createInbox(mayfly, { name: 'Linkable' })
    await newMail(inbox.address, 'First')
    await newMail(inbox.address, 'Second')
    const { page } = await signedIn()
    await inboxLink(page, 'Linkable').click()
    await page.getByRole('heading', { name: 'Second' }).waitFor()
    await openMail(page, 'First')
    await page.getByRole('heading', { name: 'First' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'First' }).waitFor()
    await row(page, 'Second').waitFor()
    await page.keyboard.press('k')
    await page.getByRole('heading', { name: 'Second' }).waitFor()
    await page.keyboard.press('j')
    await page.getByRole('heading', { name: 'First' }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'All mail', level: 1 }).waitFor()
    await page.goForward()
    await page.getByRole('heading', { name: 'First' }).waitFor()
  })

  it('opens the newest mail of all inboxes, marks it as read, and counts the others in the title', async () => {
    const inbox = await createInbox(mayfly, { name: 'In the title' })
    await newMail(inbox.address, 'Earlier')
    await messagesOf(mayfly, inbox.id, 1)
    await newMail(inbox.address, 'Seen')
    await messagesOf(mayfly, inbox.id, 2)
    const { page } = await signedIn()
    await page.getByRole('heading', { name: 'Seen' }).waitFor()
    await page.getByRole('button', { name: 'Mark all as read' }).click()
    await until('the title', async () => (await page.title()) === 'All mail – Mayfly')
    await newMail(inbox.address, 'Unseen')
    await until('the count', async () => (await page.title()) === '(1) All mail – Mayfly')
    await inboxLink(page, 'In the title').getByText('1 unread').waitFor()
    await page.getByText('New mail from App: Unseen').waitFor({ state: 'attached' })
    // What is being read stays open.
    await page.getByRole('heading', { name: 'Seen' }).waitFor()
    await openMail(page, 'Unseen')
    await until('the title', async () => (await page.title()) === 'All mail – Mayfly')
    const reload = await page.reload()
    expect(reload?.status()).toBe(200)
    await page.getByRole('heading', { name: 'Unseen' }).waitFor()
    expect(await page.locator('.message-row.unread').count()).toBe(0)
    await page.getByRole('button', { name: 'Mark as unread' }).click()
    await until('the count', async () => (await page.title()) === '(1) All mail – Mayfly')
    // It is older than what was marked as read together.
    await page.keyboard.press('j')
    await page.getByRole('heading', { name: 'Seen', exact: true }).waitFor()
    await page.keyboard.press('U')
    await until('the count', async () => (await page.title()) === '(2) All mail – Mayfly')
    await openMail(page, 'Unseen')
    await until('the count', async () => (await page.title()) === '(1) All mail – Mayfly')
  })

  it('marks a mail without a subject as read that its URL opens beside a list without it', async () => {
    const inbox = await createInbox(mayfly, { name: 'Opened beside' })
    await send(mayfly, inbox.address, 'Subject:\r\n\r\nHello\r\n')
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    await newMail(inbox.address, 'Listed')
    await messagesOf(mayfly, inbox.id, 2)
    const { page } = await signedIn()
    await row(page, '(no subject)').waitFor()
    await inboxLink(page, 'Opened beside').getByText('1 unread').waitFor()
    await page.goto(`${mayfly.url}/console/mail?q=subject:listed&inbox=${inbox.id}&message=${id}`)
    await page.getByRole('heading', { name: '(no subject)' }).waitFor()
    await row(page, 'Listed').waitFor()
    expect(await row(page, '(no subject)').count()).toBe(0)
    await inboxLink(page, 'Opened beside').getByText('unread').waitFor({ state: 'detached' })
  })

  it('shows a list or a mail on a phone, with the steps back that one expects', async () => {
    const inbox = await createInbox(mayfly, { name: 'On a phone' })
    await newMail(inbox.address, 'A mail')
    const { page } = await signedIn({ viewport: { width: 390, height: 780 } })
    await page.getByRole('button', { name: 'Menu' }).click()
    await inboxLink(page, 'On a phone').click()
    await openMail(page, 'A mail')
    await page.getByRole('heading', { name: 'A mail' }).waitFor()
    await row(page, 'A mail').waitFor({ state: 'hidden' })
    await page.goBack()
    await page.getByRole('heading', { name: 'On a phone', level: 1 }).waitFor()
    await openMail(page, 'A mail')
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('heading', { name: 'A mail' }).waitFor({ state: 'detached' })
    await page.goBack()
    await page.getByRole('heading', { name: 'All mail', level: 1 }).waitFor()
  })

  it('selects and deletes mail with the keyboard, and lists its keys', async () => {
    const inbox = await createInbox(mayfly, { name: 'By key' })
    for (const subject of ['one', 'two', 'three']) await newMail(inbox.address, subject)
    const { page } = await signedIn()
    await inboxLink(page, 'By key').click()
    await page.getByRole('heading', { name: 'three' }).waitFor()
    await row(page, 'one').waitFor()
    await page.keyboard.press('?')
    await page.getByText('Keyboard shortcuts', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('x')
    await page.keyboard.press('j')
    await page.getByRole('heading', { name: 'two' }).waitFor()
    await page.keyboard.press('x')
    await page.getByText('2 selected').waitFor()
    await page.keyboard.press('#')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('heading', { name: 'one' }).waitFor()
    expect((await messagesOf(mayfly, inbox.id, 1)).map(({ subject }) => subject)).toEqual(['one'])
  })

  it('deletes all mail of an inbox, which stays', async () => {
    const inbox = await createInbox(mayfly, { name: 'To be emptied' })
    for (const subject of ['one', 'two', 'three']) await newMail(inbox.address, subject)
    await messagesOf(mayfly, inbox.id, 3)
    const { page } = await signedIn()
    await inboxLink(page, 'To be emptied').click()
    await row(page, 'one').waitFor()
    await page.getByLabel('Select all').check()
    await page.getByText('3 selected').waitFor()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('No mail yet.').waitFor()
    await newMail(inbox.address, 'four')
    await page.getByRole('heading', { name: 'four' }).waitFor()
  })

  it('deletes all mail above a list, from the sidebar, and of a search, with how many there are', async () => {
    const inbox = await createInbox(mayfly, { name: 'To be cleared' })
    const other = await createInbox(mayfly, { name: 'To be kept' })
    const fill = async (address: string, id: string, count: number) => {
      for (let index = 0; index < count; index += 1) await newMail(address, `clear ${index}`)
      await messagesOf(mayfly, id, Math.min(count, 100))
    }
    await fill(inbox.address, inbox.id, 3)
    await fill(other.address, other.id, 2)
    const { page } = await signedIn()
    const sidebar = page.getByRole('navigation')
    const confirm = async (title: string) => {
      const dialog = page.getByRole('dialog', { name: title })
      await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    await inboxLink(page, 'To be cleared').hover()
    await sidebar.getByRole('button', { name: 'Delete all mail of To be cleared' }).click()
    await confirm('Delete 3 mails?')
    await page.getByText('No mail yet.').waitFor()
    expect(page.url()).toBe(`${mayfly.url}/console/inboxes/${inbox.id}?environment=development`)
    await sidebar.getByRole('button', { name: /To be cleared/ }).waitFor({ state: 'detached' })

    // More than a page of the list.
    await fill(inbox.address, inbox.id, 101)
    await page.reload()
    await page.getByRole('button', { name: 'Delete all', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Delete all', exact: true }).click()
    await confirm('Delete 101 mails?')
    await page.getByText('No mail yet.').waitFor()

    await page.goto(`${mayfly.url}/console/mail?q=subject:clear`)
    await page.getByRole('button', { name: 'Delete all', exact: true }).click()
    await confirm('Delete 2 mails?')
    await page.getByText('No mail matches.').waitFor()
    expect(await messagesOf(mayfly, other.id, 0)).toEqual([])
  })

  it('offers the link of a text, and shows an attached image', async () => {
    const { address } = await createInbox(mayfly, { name: 'Text' })
    const pixel =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const source = [
      'Subject: With an image',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=part',
      '',
      '--part',
      '',
      'Open https://app.example/confirm?token=8d1f to confirm.',
      '--part',
      'Content-Type: image/png; name=photo.png',
      'Content-Disposition: attachment; filename=photo.png',
      'Content-Transfer-Encoding: base64',
      '',
      pixel,
      '--part--',
      '',
    ]
    await send(mayfly, address, source.join('\r\n'))
    const { page } = await signedIn()
    await inboxLink(page, 'Text').click()
    const link = page.locator('.chips').getByRole('link', { name: 'https://app.example/confirm?token=8d1f' })
    expect(await link.getAttribute('href')).toBe('https://app.example/confirm?token=8d1f')
    await page.getByRole('button', { name: 'Show photo.png' }).click()
    await page.getByRole('dialog', { name: 'photo.png' }).waitFor()
  })

  it('shows the address of the SMTP server for an empty inbox, and puts a sample into it', async () => {
    const inbox = await createInbox(mayfly, { name: 'Empty' })
    const { page } = await signedIn()
    await inboxLink(page, 'Empty').click()
    await page.getByText(`127.0.0.1:${mayfly.smtpPort}`, { exact: true }).waitFor()
    await page.getByRole('tab', { name: 'swaks' }).click()
    await page.getByText(`swaks --server 127.0.0.1:${mayfly.smtpPort} --to '${inbox.address}'`).waitFor()
    await page.getByRole('button', { name: 'Send a test mail' }).click()
    await page.getByRole('heading', { name: 'Your code is 493201' }).waitFor()
    expect(await page.getByRole('link', { name: 'Confirm my address' }).getAttribute('href')).toBe(
      'https://example.com/confirm?token=8d1f',
    )
    await page.getByRole('link', { name: 'SMTP settings' }).click()
    await page.getByText(`127.0.0.1:${mayfly.smtpPort}`, { exact: true }).waitFor()
  })

  it('searches as one types, shows new mail that matches, and keeps searches', async () => {
    const inbox = await createInbox(mayfly)
    await newMail(inbox.address, 'Needle')
    await newMail(inbox.address, 'Haystack')
    const opened = await signedIn()
    const { page } = opened
    await row(page, 'Haystack').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('subject:needle from:app@example.com')
    await row(page, 'Haystack').waitFor({ state: 'detached' })
    await row(page, 'Needle').waitFor()
    expect(page.url()).toContain('q=subject%3Aneedle+from%3Aapp%40example.com')
    await newMail(inbox.address, 'Needle of later')
    await row(page, 'Needle of later').waitFor()
    await page.getByRole('button', { name: 'Keep this search' }).click()
    await inboxLink(page, 'subject:needle from:app@example.com').waitFor()
    await page.getByRole('button', { name: 'Remove subject:needle', exact: true }).click()
    await row(page, 'Haystack').waitFor()
    await page.getByRole('searchbox').fill('form:app')
    await page.getByText('"form:app" in q is not known').waitFor()
    // Another attempt would be refused too.
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
    // The browser reports the request that was refused.
    opened.errors.length = 0
  })

  it('does not search for half of a filter', async () => {
    const inbox = await createInbox(mayfly)
    await newMail(inbox.address, 'With a code', 'Your code is 493201.')
    await newMail(inbox.address, 'Without one')
    const { page } = await signedIn()
    await row(page, 'Without one').waitFor()
    const searches: string[] = []
    page.on('request', (request) => {
      const q = new URL(request.url()).searchParams.get('q')
      if (request.url().includes('/v1/messages?') && q !== null) searches.push(q)
    })
    await page.keyboard.press('/')
    // Slow enough that words are searched for letter by letter.
    await page.keyboard.type('from:app has:co', { delay: 250 })
    await page.keyboard.type('de')
    await row(page, 'Without one').waitFor({ state: 'detached' })
    await row(page, 'With a code').waitFor()
    await page.getByRole('searchbox').fill('from:nobody')
    await page.keyboard.press('Enter')
    await page.getByText('No mail matches.').waitFor()
    expect(searches).toEqual(expect.arrayContaining(['fro', 'from:app', 'from:app has:code', 'from:nobody']))
    expect(searches.filter((q) => /(from:(ap?)?|has:(co?d?)?)$/.test(q))).toEqual([])
  })

  it('lists refused mail, and creates the inbox that it needs', async () => {
    const hosted = { hosted: true, environment: 'development', catch_all: { action: 'reject' } }
    const { body } = await call<{ name: string }>(mayfly, 'POST', '/v1/domains', { body: hosted })
    const address = `support@${body.name}`
    await until('the refusal', async () => {
      await expect(newMail(address, 'Lost')).rejects.toThrow('550')
      const { body: refused } = await call<{ recipient: string }[]>(mayfly, 'GET', '/v1/refused-mail')
      return refused.some(({ recipient }) => recipient === address)
    })
    const ended = await createInbox(mayfly)
    await call(mayfly, 'DELETE', `/v1/inboxes/${ended.id}`)
    await expect(newMail(ended.address, 'Lost')).rejects.toThrow('550')
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Refused' }).click()
    const madeUp = page.getByRole('listitem').filter({ hasText: ended.address })
    await madeUp.getByText('The server makes up the addresses in mayfly.test.').waitFor()
    await madeUp.getByRole('button', { name: 'Create inbox' }).waitFor()
    const entry = page.getByRole('listitem').filter({ hasText: address })
    await entry.getByText('5.1.1 no inbox has this address').waitFor()
    await entry.getByRole('button', { name: `Accept all mail to ${body.name}` }).waitFor()
    await entry.getByRole('button', { name: 'Create this inbox' }).click()
    await page.getByRole('heading', { name: address }).waitFor()
    await newMail(address, 'Found')
    await page.getByRole('heading', { name: 'Found' }).waitFor()
  })

  it('checks the HTML and the links of a mail', async () => {
    const endpoint = await startEndpoint((response) => {
      response.statusCode = 404
      response.end()
    })
    const inbox = await createInbox(mayfly, { name: 'Checked' })
    const html = `<p style="display: grid">Hello</p><a href="${endpoint.url}/gone">Go on</a>`
    await send(mayfly, inbox.address, `Subject: To check\r\nContent-Type: text/html\r\n\r\n${html}\r\n`)
    await messagesOf(mayfly, inbox.id, 1)
    const { page } = await signedIn()
    await inboxLink(page, 'Checked').click()
    await page.getByRole('tab', { name: 'HTML check' }).click()
    await page.getByRole('link', { name: 'display:grid' }).waitFor()
    await page.getByRole('tab', { name: /^HTML check \d+ %$/ }).waitFor()
    await page.getByRole('tab', { name: 'Links' }).click()
    await page.getByRole('button', { name: 'Check links' }).click()
    await page.getByRole('tabpanel').getByText('404', { exact: true }).waitFor()
    await endpoint.dispose()
  })

  it('shows mail that arrived while the connection was lost, once', async () => {
    const inbox = await createInbox(mayfly, { name: 'Offline' })
    await newMail(inbox.address, 'before')
    const opened = await signedIn()
    const { page } = opened
    const line = await TcpProxy.start(new URL(mayfly.url).host)
    await page.goto(`http://${line.address}/console/inboxes/${inbox.id}`)
    await row(page, 'before').waitFor()
    await line.cut()
    for (const subject of ['during 1', 'during 2', 'during 3']) await newMail(inbox.address, subject)
    await page.getByText('Reconnecting…').waitFor()
    await line.restore()
    await newMail(inbox.address, 'after')
    await row(page, 'after').waitFor()
    await row(page, 'during 1').waitFor()
    const subjects = await page.locator('.message-row .subject').allTextContents()
    expect(subjects).toEqual(['after', 'during 3', 'during 2', 'during 1', 'before'])
    await page.getByText('Live', { exact: true }).waitFor()
    await line.cut()
    // The browser reports the requests that failed meanwhile.
    opened.errors.length = 0
  })

  it('loads a mail and a page by itself once the server is back', async () => {
    const inbox = await createInbox(mayfly, { name: 'Back again' })
    await newMail(inbox.address, 'one')
    await messagesOf(mayfly, inbox.id, 1)
    await newMail(inbox.address, 'two')
    const opened = await signedIn()
    const { page } = opened
    const line = await TcpProxy.start(new URL(mayfly.url).host)
    await page.goto(`http://${line.address}/console/inboxes/${inbox.id}`)
    await page.getByRole('heading', { name: 'two' }).waitFor()
    const failure = page.getByRole('alert').filter({ hasText: 'Mayfly does not answer' })
    await line.cut()
    await openMail(page, 'one')
    await failure.waitFor()
    await line.restore()
    await page.getByRole('heading', { name: 'one' }).waitFor()
    await failure.waitFor({ state: 'detached' })
    await line.cut()
    await page.getByRole('link', { name: 'API keys' }).click()
    await failure.waitFor()
    await line.restore()
    await page.getByRole('table').waitFor()
    await failure.waitFor({ state: 'detached' })
    await line.cut()
    // The browser reports the requests that failed meanwhile.
    opened.errors.length = 0
  })

  it('counts mail in the list as it arrives, and lists inboxes that are made elsewhere', async () => {
    const inbox = await createInbox(mayfly, { name: 'Counted' })
    await newMail(inbox.address, 'before')
    const { id: first } = only(await messagesOf(mayfly, inbox.id, 1))
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Manage inboxes' }).click()
    const listed = (name: string) => page.locator('.row').filter({ hasText: name })
    const count = (name: string, messages: string) => listed(name).getByText(messages, { exact: true })
    await count('Counted', '1 message').waitFor()
    // Until they are released, the page gets no answer to reads of the list, only the stream.
    const reads = Promise.withResolvers<undefined>()
    await page.route('**/v1/inboxes?*', async (route) => {
      await reads.promise
      await route.continue()
    })
    await newMail(inbox.address, 'after')
    await count('Counted', '2 messages').waitFor()
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${first}`)
    await count('Counted', '1 message').waitFor()
    reads.resolve(undefined)

    const other = await createInbox(mayfly, { name: 'Made elsewhere' })
    for (const subject of ['one', 'two', 'three']) await newMail(other.address, subject)
    await count('Made elsewhere', '3 messages').waitFor()
    await createInbox(mayfly, { name: 'Made without mail' })
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await listed('Made without mail').waitFor()
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    await listed('Counted').waitFor({ state: 'detached' })
  })

  it('counts mail that arrived while the connection of the list was lost, once', async () => {
    const inbox = await createInbox(mayfly, { name: 'Counted offline' })
    const opened = await signedIn()
    const { page } = opened
    const listed = page.locator('.row').filter({ hasText: 'Counted offline' })
    const count = (messages: string) => listed.getByText(messages, { exact: true })
    const line = await TcpProxy.start(new URL(mayfly.url).host)
    await page.goto(`http://${line.address}/console/inboxes`)
    await newMail(inbox.address, 'before')
    await count('1 message').waitFor()
    await line.cut()
    for (const subject of ['during 1', 'during 2']) await newMail(inbox.address, subject)
    await page.getByText('Reconnecting…').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await line.restore()
    await count('3 messages').waitFor()
    await page.getByText('Reconnecting…').waitFor({ state: 'detached' })
    await line.cut()
    // The browser reports the requests that failed meanwhile.
    opened.errors.length = 0
  })

  it('makes a key, which works with curl until it is revoked', async () => {
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Create key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('from the console')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'Copy Secret' }).click()
    const key = { ...mayfly, apiKey: await copied(page) }
    expect((await call(key, 'GET', '/v1/inboxes')).status).toBe(200)

    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Revoke from the console' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
    await page
      .getByRole('row', { name: /from the console/ })
      .getByText('revoked')
      .waitFor()
    expect((await call(key, 'GET', '/v1/inboxes')).status).toBe(401)
  })

  it('offers the environment of a new key, with a command that the key may send', async () => {
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('button', { name: 'Create key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('reader')
    await dialog.getByLabel('Environment').fill('another')
    await dialog.getByRole('checkbox', { name: /^inboxes/ }).uncheck()
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('Select at least one scope.').waitFor()
    await dialog.getByRole('checkbox', { name: /^read/ }).check()
    await dialog.getByLabel('Expires').selectOption('Never')
    await dialog.getByRole('button', { name: 'Create' }).click()
    // It must be confirmed.
    await dialog.getByRole('checkbox', { name: 'This key works until it is revoked.' }).check()
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('button', { name: 'Copy the command' }).click()
    const [, path = '', apiKey = ''] =
      /(\/v1\/\S+) -H 'Authorization: Bearer (.+)'$/.exec(await copied(page)) ?? []
    expect((await call({ ...mayfly, apiKey }, 'GET', path)).status).toBe(200)

    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('row', { name: /reader.*never/ }).waitFor()
    await page.getByLabel('Environment').selectOption('another')
    await page.getByRole('heading', { name: 'Your first mail' }).waitFor()
  })

  it('finds a failed delivery and replays it', async () => {
    let isWorking = false
    const endpoint = await startEndpoint((response) => {
      response.statusCode = isWorking ? 200 : 500
      response.end('the answer of the endpoint')
    })
    try {
      const { page } = await signedIn()
      await page.getByRole('link', { name: 'Register a webhook' }).click()
      await page.getByLabel('URL').fill(endpoint.url)
      await page.getByRole('dialog').getByRole('button', { name: 'Register a webhook' }).click()
      await page.getByText('whsec_').waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
      await newMail((await createInbox(mayfly)).address, 'for the webhook')
      await until('the first attempt', () => endpoint.requests.length > 0)

      await page.getByRole('link', { name: endpoint.url }).click()
      const delivery = page.getByRole('row', { name: /message\.received/ }).first()
      // On a slow machine there may already be a second attempt.
      await delivery.getByText(/attempts?, answered 500/).waitFor()
      await delivery.getByText('retrying').waitFor()
      expect(await page.getByRole('button', { name: 'Replay failed deliveries' }).isDisabled()).toBe(true)
      await page.getByLabel('State').selectOption('Failed')
      await page.getByText('tried again is listed as retrying').waitFor()
      await page.getByLabel('State').selectOption('All')
      await delivery.getByRole('button', { name: /^Open/ }).click()
      await page.getByText('the answer of the endpoint').first().waitFor()
      await page.getByRole('button', { name: 'Close' }).click()

      isWorking = true
      const before = endpoint.requests.length
      await delivery.getByRole('button', { name: /^Replay/ }).click()
      await page.getByText('Replay completed: 1 of 1 done.').waitFor()
      expect(endpoint.requests.length).toBeGreaterThan(before)
    } finally {
      await endpoint.dispose()
    }
  })

  it('charts the usage of a run with the right numbers', async () => {
    const inbox = await createInbox(mayfly, { labels: { run: 'charted' } })
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Usage' }).click()
    await page.getByLabel('Only with the label').fill('run:charted')
    await page.keyboard.press('Enter')
    for (let count = 0; count < 5; count += 1) await newMail(inbox.address, `mail ${count}`)
    await until('five counted mails', async () => {
      // Another reload would cancel one that has not been answered.
      const answer = page.waitForResponse(/\/v1\/usage\/report/)
      await page.getByRole('button', { name: 'Reload' }).click()
      await answer
      return (await page.getByText('Mails', { exact: true }).locator('xpath=..').getByText('5, ').count()) > 0
    })
    expect(await mailsByHovering(page)).toBe(5)
  })

  it('says what is wrong with a label in the usage, and loads again once it is right', async () => {
    await createInbox(mayfly, { labels: { run: 'corrected' } })
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Usage' }).click()
    const label = page.getByLabel('Label of the run')
    await label.fill('corrected')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('"corrected" is not a label').first().waitFor()
    await label.fill('run:corrected')
    await page.keyboard.press('Enter')
    await page.getByText('Inboxes without mail').waitFor()
    await page.getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('heading', { name: 'Keys' }).waitFor()
  })

  it('sets a quota, and removes it with an empty limit', async () => {
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Account', exact: true }).click()
    const quota = page.locator('.quota').filter({ hasText: 'Active inboxes' })
    const set = async (limit: string) => {
      await page.getByRole('button', { name: 'Change the quota: Active inboxes' }).click()
      await page.getByLabel('Limit', { exact: true }).fill(limit)
      await page.getByRole('button', { name: 'Save' }).click()
    }
    await set('5000')
    await quota.getByText('of 5,000').waitFor()
    await set('')
    await quota.getByText('of 10,000,000').waitFor()
  })

  it('limits an environment', async () => {
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Account', exact: true }).click()
    await page.getByRole('button', { name: 'Limit an environment or key' }).click()
    await page.getByLabel('What is limited').selectOption('Messages today')
    await page.getByLabel('For', { exact: true }).selectOption('environment development')
    await page.getByLabel('Limit', { exact: true }).fill('4000')
    await page.getByRole('button', { name: 'Save' }).click()
    const quota = page.locator('.quota').filter({ hasText: 'Messages today of development' })
    await quota.getByText('of 4,000').waitFor()
    await quota.getByText('Begins again').waitFor()
    await page.getByRole('button', { name: 'Change the quota: Messages today of development' }).click()
    await page.getByLabel('Limit', { exact: true }).fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await quota.waitFor({ state: 'detached' })
  })

  it('asks for the password of a protected inbox', async () => {
    const body = { name: 'Protected', password_protected: true }
    const { password = '' } = (await call<{ password?: string }>(mayfly, 'POST', '/v1/inboxes', { body }))
      .body
    const opened = await signedIn()
    const { page } = opened
    await inboxLink(page, 'Protected').click()
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Open the inbox' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Open the inbox' }).click()
    await page.getByText('No mail yet.').waitFor()
    // The browser reports the answers 403.
    opened.errors.length = 0
  })

  it('shares an inbox by a link, until it is revoked', async () => {
    const inbox = await createInbox(mayfly, { name: 'Shared' })
    const { page } = await signedIn()
    await inboxLink(page, 'Shared').click()
    await page.getByRole('button', { name: 'Share', exact: true }).click()
    await page.getByRole('button', { name: 'Copy the link' }).click()
    expect(await copied(page)).toBe(`${mayfly.url}/console/inboxes/${inbox.id}?environment=development`)
    await page.getByRole('button', { name: 'Create link' }).click()
    const link = (await page.locator('[data-secret]').textContent()) ?? ''
    await page.getByLabel('The link may also delete the inbox').check()
    await page.getByRole('button', { name: 'Create link' }).click()
    const ownerLink = page.locator('[data-secret]').filter({ hasNotText: link })
    const linkOfOwner = (await ownerLink.textContent()) ?? ''

    const guests = await browser.newContext()
    const guest = await guests.newPage()
    await guest.goto(link)
    await guest.getByText(inbox.address, { exact: true }).waitFor()
    await newMail(inbox.address, 'For the guest', 'Hello, guest.')
    await guest.getByRole('tabpanel').getByText('Hello, guest.').waitFor()
    expect(await guest.getByRole('button', { name: 'Erase now' }).count()).toBe(0)
    const second = await guests.newPage()
    await second.goto(linkOfOwner)
    await second.getByRole('button', { name: 'Erase now' }).waitFor()
    const links = page.getByRole('button', { name: /^Revoke tok_/ })
    await links.first().click()
    await links.nth(1).waitFor({ state: 'detached' })
    await links.click()
    await page.getByText('There are none.').waitFor()
    // A link that is revoked is not offered any more.
    await ownerLink.waitFor({ state: 'detached' })
    await guest.getByRole('alert').getByText('This link is no longer valid').waitFor()
    await guests.close()
  })

  it('loads images of the web on request, for one mail only, and tells the site nothing', async () => {
    const inbox = await createInbox(mayfly, { name: 'Pictures' })
    const html = '<h1>Hello</h1><img src="https://pictures.example/1"><script>alert(1)</script>'
    for (const subject of ['First', 'Second'])
      await send(mayfly, inbox.address, `Subject: ${subject}\r\nContent-Type: text/html\r\n\r\n${html}\r\n`)
    const { page } = await signedIn()
    const referrers: (string | undefined)[] = []
    await page.context().route('https://pictures.example/*', async (route) => {
      referrers.push((await route.request().allHeaders())['referer'])
      await route.fulfill({ contentType: 'image/png', body: '' })
    })
    const shown = page.frameLocator('iframe').getByRole('heading', { name: 'Hello' })
    const load = page.getByRole('button', { name: 'Load for this message' })
    await inboxLink(page, 'Pictures').click()
    await row(page, 'Second').waitFor()
    await openMail(page, 'First')
    await shown.waitFor()
    await load.waitFor()
    expect(referrers).toEqual([])
    await load.click()
    await until('the image', () => referrers.length > 0)
    await shown.waitFor()
    await page.keyboard.press('k')
    await page.getByRole('heading', { name: 'Second' }).waitFor()
    await load.waitFor()
    await shown.waitFor()
    expect(referrers).toEqual([undefined])
  })

  it('edits an inbox, and deletes several', async () => {
    await Promise.all(['one', 'two', 'three'].map((name) => createInbox(mayfly, { name: `bulk ${name}` })))
    const { page } = await signedIn()
    await page.getByRole('link', { name: 'Manage inboxes' }).click()
    await page.getByRole('button', { name: 'Edit bulk one' }).click()
    await page.getByLabel('Name', { exact: true }).fill('bulk renamed')
    await page.getByLabel('Lifetime').fill('3d')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.row').filter({ hasText: 'bulk renamed' }).getByText('ends in 2 d 23 h').waitFor()
    await page.getByLabel('Name or address').fill('bulk')
    for (const name of ['renamed', 'two', 'three']) await page.getByLabel(`Select bulk ${name}`).check()
    await page.getByRole('button', { name: 'Delete 3 inboxes' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete 3 inboxes' }).click()
    await page.getByText('No inbox matches.').waitFor()
  })

  it('shows how an inbox ended', async () => {
    const inbox = await createInbox(mayfly)
    const opened = await signedIn()
    const { page } = opened
    await page.goto(`${mayfly.url}/console/inboxes/${inbox.id}`)
    await page.getByText('No mail yet.').waitFor()
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    await page.getByText('inbox-deleted').or(page.getByText('was deleted')).first().waitFor()
    opened.errors.length = 0
  })

  it('has no stream while it is hidden, and shows what has arrived when it is visible again', async () => {
    const inbox = await createInbox(mayfly, { name: 'In the background' })
    const { page } = await signedIn()
    await inboxLink(page, 'In the background').click()
    await page.getByText('Live').waitFor()
    const openStreams = async () => {
      const { body } = await call<string>(mayfly, 'GET', '/metrics')
      return Number(/^mayfly_open_streams (\d+)/m.exec(body)?.[1])
    }
    const setHidden = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))`)
    await until('the stream to open', async () => (await openStreams()) === 2)
    await setHidden(true)
    await until('the stream to end', async () => (await openStreams()) === 0)
    await newMail(inbox.address, 'Meanwhile')
    await messagesOf(mayfly, inbox.id, 1)
    expect(await row(page, 'Meanwhile').count()).toBe(0)
    await setHidden(false)
    await row(page, 'Meanwhile').waitFor()
    await until('the stream to open again', async () => (await openStreams()) === 2)
    await newMail(inbox.address, 'Afterwards')
    await row(page, 'Afterwards').waitFor()
  })

  it('opens a sign-in link that is pasted into the tab of the sign-in page', async () => {
    const { page } = await signedIn()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    await page.goto(`${mayfly.url}/console`)
    await page.getByLabel('API key').waitFor()
    const link = await newLink(mayfly)
    // Like a link that is pasted into the address bar, this loads nothing.
    await page.evaluate(`location.href = ${JSON.stringify(link)}`)
    await page.getByRole('heading', { name: 'All mail', level: 1 }).waitFor()
    expect(page.url()).not.toContain('sign-in')
    only(open).errors.length = 0
  })

  it('stays signed in if a link can not be used, and says why', async () => {
    const opened = await signedIn()
    const { page } = opened
    const link = await newLink(mayfly)
    await page.goto(link)
    const inboxes = page.getByRole('heading', { name: 'All mail', level: 1 })
    await inboxes.waitFor()
    const refusal = page.getByRole('alert').filter({ hasText: 'has been used or has expired' })
    await page.goto(link)
    await refusal.waitFor()
    await inboxes.waitFor()
    await refusal.getByRole('button', { name: 'Close' }).click()
    await refusal.waitFor({ state: 'detached' })
    // As if it was pasted into the address bar, which loads nothing.
    await page.evaluate(`location.hash = ${JSON.stringify(new URL(link).hash)}`)
    await refusal.waitFor()
    await inboxes.waitFor()
    // The browser reports the answers 401.
    opened.errors.length = 0
  })

  it('asks before a link of somebody else replaces the session', async () => {
    const { key } = await openAccount(mayfly, { name: 'Theirs', plan: 'enterprise' })
    await createInbox(mayfly, { name: 'Mine' })
    const opened = await signedIn()
    const { page } = opened
    const question = page
      .getByRole('alert')
      .filter({ hasText: 'The link or key signs in to the account Theirs' })
    await page.goto(await newLink(withKey(mayfly, key)))
    await question.waitFor()
    await page.getByRole('button', { name: 'Stay signed in' }).click()
    await inboxLink(page, 'Mine').waitFor()
    await page.goto(await newLink(withKey(mayfly, key)))
    await question.waitFor()
    await page.getByRole('button', { name: 'Sign in with the link' }).click()
    await page.getByRole('heading', { name: 'Your first mail' }).waitFor()
    // The browser reports the answers 409.
    opened.errors.length = 0
  })

  it('ends on every page when the user signs out everywhere', async () => {
    await createInbox(mayfly, { name: 'Watched' })
    const [first, second] = [await signedIn(), await signedIn()]
    await inboxLink(second.page, 'Watched').click()
    await second.page.getByText('Live').waitFor()
    await first.page.getByRole('link', { name: 'Account' }).click()
    await first.page.getByRole('button', { name: 'Sign out everywhere' }).click()
    for (const { page } of [first, second]) await page.getByLabel('API key').waitFor()
    await second.page.getByText('Your session has ended.').waitFor()
    await second.page.getByLabel('API key').fill(mayfly.apiKey)
    await second.page.getByRole('button', { name: 'Sign in' }).click()
    await second.page.getByRole('heading', { name: 'Watched' }).waitFor()
    for (const { errors } of [first, second]) errors.length = 0
  })
})

/** Moves over the last chart from its end, and adds the mails of each interval that its legend shows. */
async function mailsByHovering(page: Page): Promise<number> {
  const chart = page.locator('figure').filter({ hasText: 'Mails over the run' })
  const over = chart.locator('.u-over')
  const { width = 0 } = (await over.boundingBox()) ?? {}
  const seen = new Map<string, number>()
  for (let x = 1; x < width; x += width / 100) {
    await over.hover({ position: { x, y: 20 } })
    const [time = '', mails = ''] = await chart.locator('.u-legend .u-value').allTextContents()
    if (mails !== '' && mails !== '--') seen.set(time, Number(mails))
  }
  return [...seen.values()].reduce((sum, count) => sum + count, 0)
}
