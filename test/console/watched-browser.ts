import type { Browser, BrowserContext, Frame, Page } from 'playwright-core'
import { startBrowser } from '#test/harness/browser.js'

/** What a document did, in the order in which it was noticed. */
export interface Observed {
  /** Calls of the function `attacked`, and dialogs. */
  scripts: string[]
  requests: { url: string; type: string; referrer: string | undefined }[]
  /** URLs to which the page or its frames went. */
  navigations: string[]
  /** URLs of new tabs. */
  tabs: string[]
  /** Errors and warnings in the browser's console, such as what a policy has blocked. */
  complaints: string[]
}

/** A document in a frame of a page. */
export interface Framed {
  /** A URL of the server, or HTML with headers that the browser gets instead of an answer of the server. */
  document: { url: string } | { html: string; headers?: Readonly<Record<string, string>> }
  /** The attribute `sandbox` of the frame; null for none. */
  sandbox: string | null
}

const PAGE = '/the-page'
const DOCUMENT = '/the-document'

/** A Chromium that reports what documents do. No request leaves the machine. */
export class WatchedBrowser {
  private constructor(
    private readonly browser: Browser,
    private readonly serverUrl: string,
  ) {}

  static async launch(serverUrl: string): Promise<WatchedBrowser> {
    const browser = await startBrowser(['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'])
    return new WatchedBrowser(browser, serverUrl)
  }

  /** Shows a document in a frame, as the console does, and passes the page to `use` once everything has loaded. */
  async show<Result>(framed: Framed, use: (shown: ShownDocument) => Promise<Result>): Promise<Result> {
    const context = await this.browser.newContext({ serviceWorkers: 'block' })
    try {
      const observed = await this.watch(context, framed)
      const page = await context.newPage()
      const shown = new ShownDocument(page, observed)
      await page.goto(this.serverUrl + PAGE)
      await shown.settle()
      return await use(shown)
    } finally {
      await context.close()
    }
  }

  private async watch(context: BrowserContext, { document, sandbox }: Framed): Promise<Observed> {
    const observed: Observed = { scripts: [], requests: [], navigations: [], tabs: [], complaints: [] }
    const url = 'url' in document ? document.url : DOCUMENT
    const expected = new Set([PAGE, url].map((path) => this.serverUrl + path))
    await context.exposeBinding('attacked', ({ frame }) => observed.scripts.push(frame.url()))
    await context.route('**/*', async (route) => {
      const request = route.request()
      const path = request.url().replace(this.serverUrl, '')
      if (path === PAGE) return route.fulfill({ contentType: 'text/html', body: pageWith(url, sandbox) })
      if (path === '/favicon.ico') return route.fulfill({ status: 204 })
      if (path === url) {
        if ('url' in document) return route.continue()
        return route.fulfill({
          contentType: 'text/html; charset=utf-8',
          headers: document.headers ?? {},
          body: document.html,
        })
      }
      const referrer = (await request.allHeaders())['referer']
      observed.requests.push({ url: request.url(), type: request.resourceType(), referrer })
      return route.fulfill({ status: 200, contentType: 'text/plain', body: '' })
    })
    context.on('page', (page) => {
      page.on('framenavigated', (frame) => {
        const isOwn = (frame.parentFrame() ?? page.mainFrame()) === page.mainFrame()
        if (isOwn && !expected.has(frame.url())) observed.navigations.push(frame.url())
      })
      page.on('dialog', (dialog) => {
        observed.scripts.push(`dialog: ${dialog.message()}`)
        void dialog.dismiss()
      })
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) observed.complaints.push(message.text())
      })
      page.on('popup', (popup) => observed.tabs.push(popup.url()))
    })
    return observed
  }

  /** Ends the browser. */
  close(): Promise<void> {
    return this.browser.close()
  }
}

export class ShownDocument {
  constructor(
    readonly page: Page,
    readonly observed: Observed,
  ) {}

  get frame(): Frame {
    const [, frame] = this.page.frames()
    if (frame === undefined) throw new Error('the page has no frame')
    return frame
  }

  /** Clicks an element of the document, if there is one. */
  async click(selector: string): Promise<void> {
    const element = this.frame.locator(selector).first()
    // Attacks cover elements, which does not keep people from clicking there.
    if ((await element.count()) > 0) await element.click({ force: true })
  }

  /** Resolves once a click in the page has been answered and the page was drawn twice. Rejects if the page hangs. */
  async settle(): Promise<void> {
    await this.page.click('#button')
    await this.page.waitForFunction("document.title === 'clicked'")
    await this.page.evaluate(
      'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
    )
  }
}

function pageWith(url: string, sandbox: string | null): string {
  const attribute = sandbox === null ? '' : ` sandbox="${sandbox}"`
  return (
    `<!doctype html><title>page</title><button id="button" onclick="document.title = 'clicked'">Click</button>` +
    `<iframe src="${url}" width="800" height="600"${attribute}></iframe>`
  )
}
