import { readFile } from 'node:fs/promises'
import type { Browser, BrowserContextOptions, Frame, Locator, Page } from 'playwright-core'
import { openConsole, openView, startBrowser } from '#test/harness/browser.js'
import { createInbox, messagesOf, only, send } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'

const DIRECTION_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/
const LONG_WORD = 'Donaudampfschiff'.repeat(60)
/** Black on white is 255. Text and link of a browser's defaults, smoothed, have more than this. */
const READABLE = 150

const encoded = (text: string) => `=?utf-8?B?${Buffer.from(text).toString('base64')}?=`
const textMail = (subject: string, text: string) =>
  `Subject: ${encoded(subject)}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${text}\r\n`
const htmlMail = (html: string) =>
  `Subject: html\r\nContent-Type: text/html; charset=utf-8\r\n\r\n${html}\r\n`

/** How the console shows text that a stranger has written, in Chromium. */
describeWith('chromium')('the text of a mail in the console', () => {
  let mayfly: SharedMayfly
  let browser: Browser

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    browser = await startBrowser()
  })
  afterAll(() => browser.close())

  /** Opens a mail in the console. Resolves with its page. */
  async function shown(source: string | Buffer, options: BrowserContextOptions = {}): Promise<Page> {
    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, source)
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    const { page } = await openConsole(browser, mayfly, options)
    await openView(page, `${mayfly.url}/console/inboxes/${inbox.id}?message=${id}`)
    await page.getByRole('tab', { name: 'Details' }).waitFor()
    return page
  }

  /** The largest difference of brightness within a picture of an element, 0 to 255. */
  async function contrastIn(element: Locator): Promise<number> {
    const picture = (await element.screenshot()).toString('base64')
    const page = await browser.newPage()
    try {
      return await page.evaluate<number>(`(async () => {
        const image = new Image()
        image.src = 'data:image/png;base64,${picture}'
        await image.decode()
        const canvas = document.createElement('canvas')
        canvas.width = image.width
        canvas.height = image.height
        const context = canvas.getContext('2d')
        context.drawImage(image, 0, 0)
        const { data } = context.getImageData(0, 0, image.width, image.height)
        const greens = data.filter((_, index) => index % 4 === 1)
        return greens.reduce((most, each) => Math.max(most, each), 0) - greens.reduce((least, each) => Math.min(least, each), 255)
      })()`)
    } finally {
      await page.close()
    }
  }

  it.each([
    ['no color scheme', ''],
    ['a color scheme in its styles', '<style>:root{color-scheme: light dark}</style>'],
    ['a color scheme in a meta element', '<meta name="color-scheme" content="light dark">'],
    [
      'a color scheme, and text colors for the dark',
      '<meta name="color-scheme" content="light dark"><style>@media (prefers-color-scheme: dark){p{color:#eee}}</style>',
    ],
    ['a dark color scheme only', '<meta name="color-scheme" content="dark">'],
    ['a light color scheme only', '<style>html{color-scheme: only light}</style>'],
  ])('is readable in the light and in the dark with %s', async (_, head) => {
    const mail = htmlMail(
      `<html><head>${head}</head><body><p id="t">Your sign-in link is below.</p></body></html>`,
    )
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await shown(mail, { colorScheme })
      expect(await contrastIn(page.frameLocator('iframe').locator('#t'))).toBeGreaterThan(READABLE)
      await page.context().close()
    }
  })

  it('is laid out in the direction of its first letter', async () => {
    const page = await shown(
      textMail('שלום! הקוד שלך הוא 493201 (תקף).', 'שלום, הקוד שלך הוא 493201.\r\nHello.'),
    )
    const directionOf = (selector: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).direction`)
    await page.getByRole('tab', { name: 'Text' }).click()
    await page.getByRole('tabpanel').getByText('Hello.').waitFor()
    for (const selector of ['.reader h2', '.message-row .subject', '.reader pre'])
      expect(await directionOf(selector)).toBe('rtl')
    await openView(page, `${mayfly.url}/console/mail?q=subject:493201`)
    await page.getByText('שלום').first().waitFor()
    expect(await directionOf('.message-row .subject')).toBe('rtl')
    await page.context().close()
  })

  it('has no invisible controls of direction, in any part', async () => {
    const page = await shown(await readFile('test/console/direction-controls.eml'))
    await page.getByRole('heading', { name: 'invoice[U+202E]gnp.exe[U+202C]' }).waitFor()
    await page.getByRole('listitem').getByText('invoice[U+202E]gnp.exe[U+202C]').waitFor()
    for (const [tab, text] of [
      ['Text', 'Open [U+2067]gnp.exe[U+2069]'],
      ['Links', 'here'],
      ['Headers', 'invoice[U+202E]gnp.exe[U+202C]'],
      ['Raw', 'raw[U+202E]gnp.exe'],
      ['Details', 'SHA-256'],
    ] as const) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByRole('tabpanel').getByText(text).first().waitFor()
      expect(await page.content()).not.toMatch(DIRECTION_CONTROLS)
    }
    await page.getByRole('button', { name: 'Copy as test' }).click()
    await page.getByText('\\u202e').waitFor()
    expect(await page.content()).not.toMatch(DIRECTION_CONTROLS)
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download photo[U+202E]gnp.exe' }).click()
    expect((await saving).suggestedFilename()).toBe('photognp.exe')
    await openView(page, `${mayfly.url}/console/mail?q=subject:gnp`)
    await page.getByText('invoice[U+202E]gnp.exe[U+202C]').first().waitFor()
    expect(await page.content()).not.toMatch(DIRECTION_CONTROLS)
    await page.context().close()
  })

  it('wraps long words', async () => {
    const overflowOf = (frame: Frame | undefined, selector: string) =>
      frame?.evaluate<number>(
        `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('${selector}'))`,
      )
    const page = await shown(
      [
        `From: "${LONG_WORD}" <a@b.example>\r\nSubject: ${LONG_WORD}`,
        'Content-Type: multipart/alternative; boundary=part\r\n\r\n--part',
        `Content-Type: text/plain\r\n\r\n${LONG_WORD}\r\n--part`,
        `Content-Type: text/html\r\n\r\n<p>${LONG_WORD}</p>`,
        `<table><tr><td id="label">Address</td><td>${LONG_WORD} ${'and words '.repeat(90)}</td></tr></table>\r\n--part--\r\n`,
      ].join('\r\n'),
    )
    await page.frameLocator('iframe').getByText(LONG_WORD).first().waitFor()
    expect(await overflowOf(page.frames()[1], 'html')).toBe(0)
    const label = await page.frameLocator('iframe').locator('#label').boundingBox()
    expect(label?.width).toBeGreaterThan(40)
    for (const tab of ['Text', 'Headers', 'Raw', 'HTML source']) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByRole('tabpanel').getByText(LONG_WORD).first().waitFor()
      expect(await overflowOf(page.mainFrame(), '.reader')).toBe(0)
    }
    await page.context().close()
  })
})
