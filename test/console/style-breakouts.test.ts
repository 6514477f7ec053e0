import fc from 'fast-check'
import { ELEMENTS, mailDocument } from '#apps/api/console/mail-document.js'
import { styleBreakout } from '#apps/api/console/style-breakouts.test-support.js'
import { createInbox, messagesOf, only, send } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { WatchedBrowser, type Observed } from './watched-browser.js'

/** Mails that are sent, and shown side by side. */
const SENT = 24
/** Documents that the browser only parses. */
const PARSED = 5_000
const SEED = 21
const NOTHING: Observed = { scripts: [], requests: [], navigations: [], tabs: [], complaints: [] }

describeWith('chromium')('generated mails that break out of a style', () => {
  let mayfly: SharedMayfly
  let browser: WatchedBrowser

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    browser = await WatchedBrowser.launch(mayfly.url)
  })
  afterAll(() => browser.close())

  it('have only allowed elements in a browser, and do nothing, without policy and sandbox', async () => {
    const mails = fc.sample(styleBreakout, { numRuns: SENT, seed: SEED })
    const documents = await Promise.all(mails.map(shownDocument))
    await browser.show(
      documents.map((html) => ({ html })),
      null,
      async (shown) => {
        for (const document of shown.documents) {
          expect(document.observed).toEqual(NOTHING)
          const found = await document.frame.evaluate<string[]>(
            "Array.from(document.querySelectorAll('*'), (element) => element.localName)",
          )
          expect(found.filter((name) => !ELEMENTS.has(name))).toEqual([])
        }
      },
    )
  })

  it('have only allowed elements in whatever form they come', async () => {
    const mails = fc.sample(styleBreakout, { numRuns: PARSED, seed: SEED })
    const documents = mails.map(
      (html) => mailDocument({ html, inlineImages: new Map(), isRemoteAllowed: true }).document,
    )
    const found = await browser.show([], null, ({ page }) =>
      page.evaluate<string[][]>(
        `${JSON.stringify(documents)}.map((html) => {
          const parsed = new DOMParser().parseFromString(html, 'text/html')
          return Array.from(parsed.querySelectorAll('*'), (element) => element.localName)
        })`,
      ),
    )
    const broken = mails.filter((_, index) => found[index]?.some((name) => !ELEMENTS.has(name)))
    expect(broken).toEqual([])
    expect(found).toHaveLength(PARSED)
  })

  /** Sends a mail. Resolves with the document that the console shows of it. */
  async function shownDocument(html: string): Promise<string> {
    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, `Content-Type: text/html; charset=utf-8\r\n\r\n${html}\r\n`)
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    const response = await fetch(`${mayfly.url}/console/render`, {
      method: 'POST',
      headers: { authorization: `Bearer ${mayfly.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ inbox_id: inbox.id, message_id: id }),
    })
    const { url } = (await response.json()) as { url: string }
    return (await fetch(mayfly.url + url)).text()
  }
})
