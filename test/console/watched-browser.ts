import type { Browser, BrowserContext, Frame, Page, Request, Route } from 'playwright-core'
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

/** A URL of the server, or HTML with headers that the browser gets instead of an answer of the server. */
export type Source = { url: string } | { html: string; headers?: Readonly<Record<string, string>> }

const PAGE = '/the-page'
const COLUMNS = 4
const FRAME = { width: 400, height: 300 }
/** Of the button above the frames. */
const BUTTON_HEIGHT = 40

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

  /**
   * Shows documents in frames of one page, as the console does, and passes the page to `use` once everything has loaded.
   * `sandbox` is the frames' attribute of that name; null for none. All frames are in view, because Chromium draws no
   * others.
   */
  async show<Result>(
    sources: readonly Source[],
    sandbox: string | null,
    use: (shown: ShownPage) => Promise<Result>,
  ): Promise<Result> {
    const columns = Math.min(COLUMNS, sources.length) || 1
    const viewport = {
      width: columns * FRAME.width,
      height: BUTTON_HEIGHT + Math.ceil(sources.length / columns) * FRAME.height,
    }
    const context = await this.browser.newContext({ serviceWorkers: 'block', viewport })
    try {
      const shown = new ShownPage(await context.newPage(), this.serverUrl, sources, sandbox)
      await shown.load(context)
      return await use(shown)
    } finally {
      await context.close()
    }
  }

  /** Ends the browser. */
  close(): Promise<void> {
    return this.browser.close()
  }
}

/** A document in a frame. */
export class ShownDocument {
  /** Since the last call of `takeObserved`. */
  observed = nothing()
  private loadedIn: Frame | undefined

  constructor(
    readonly url: string,
    readonly source: Source,
  ) {}

  get frame(): Frame {
    if (this.loadedIn === undefined) throw new Error(`${this.url} was not loaded`)
    return this.loadedIn
  }

  /** Answers the request of its frame. */
  answer(route: Route): Promise<void> {
    this.loadedIn = route.request().frame()
    if ('url' in this.source) return route.continue()
    const { headers = {}, html } = this.source
    return route.fulfill({ contentType: 'text/html; charset=utf-8', headers, body: html })
  }

  /** Whether a frame is that of the document, or in it. */
  has(frame: Frame | null): boolean {
    return frame !== null && (frame === this.loadedIn || this.has(frame.parentFrame()))
  }

  takeObserved(): Observed {
    const { observed } = this
    this.observed = nothing()
    return observed
  }
}

/** A page with documents in frames. */
export class ShownPage {
  readonly documents: readonly ShownDocument[]
  /** Those that may have caused what comes from none of the frames, such as a new tab. */
  private suspects: readonly ShownDocument[]

  constructor(
    readonly page: Page,
    private readonly serverUrl: string,
    sources: readonly Source[],
    private readonly sandbox: string | null,
  ) {
    this.documents = sources.map((source, index) => {
      const path = 'url' in source ? source.url : `/document-${index}`
      return new ShownDocument(serverUrl + path, source)
    })
    this.suspects = this.documents
  }

  /** Resolves once all documents have loaded. */
  async load(context: BrowserContext): Promise<void> {
    await context.exposeBinding('attacked', ({ frame }) => {
      for (const { observed } of this.causes(frame)) observed.scripts.push(frame.url())
    })
    await context.route('**/*', (route) => this.answer(route))
    this.watch(this.page)
    context.on('page', (tab) => this.watch(tab))
    await this.page.goto(this.serverUrl + PAGE)
    await this.settle()
  }

  /** Clicks an element of a document, if there is one. */
  async click(document: ShownDocument, selector: string): Promise<void> {
    this.suspects = [document]
    const element = document.frame.locator(selector).first()
    // Attacks cover elements, which does not keep people from clicking there.
    if ((await element.count()) > 0) await element.click({ force: true })
  }

  /** Resolves once a click in the page has been answered and the page was drawn twice. Rejects if the page hangs. */
  async settle(): Promise<void> {
    await this.page.evaluate("document.title = 'page'")
    await this.page.click('#button')
    await this.page.waitForFunction("document.title === 'clicked'")
    await this.page.evaluate(
      'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
    )
  }

  private causes(frame: Frame | null): readonly ShownDocument[] {
    const document = this.documents.find((each) => each.has(frame))
    return document === undefined ? this.suspects : [document]
  }

  private async answer(route: Route): Promise<void> {
    const request = route.request()
    const url = request.url()
    if (url === this.serverUrl + PAGE)
      return route.fulfill({ contentType: 'text/html', body: pageWith(this.documents, this.sandbox) })
    if (url === `${this.serverUrl}/favicon.ico`) return route.fulfill({ status: 204 })
    const document = this.documents.find((each) => each.url === url)
    if (document !== undefined) return document.answer(route)
    const referrer = (await request.allHeaders())['referer']
    for (const { observed } of this.causes(frameOf(request)))
      observed.requests.push({ url, type: request.resourceType(), referrer })
    return route.fulfill({ status: 200, contentType: 'text/plain', body: '' })
  }

  private watch(page: Page): void {
    page.on('framenavigated', (frame) => {
      const isOwn = (frame.parentFrame() ?? page.mainFrame()) === page.mainFrame()
      const url = frame.url()
      const expected = this.documents.find((each) => each.has(frame))?.url ?? this.serverUrl + PAGE
      if (!isOwn || url === expected) return
      for (const { observed } of this.causes(frame)) observed.navigations.push(url)
    })
    page.on('dialog', (dialog) => {
      for (const { observed } of this.suspects) observed.scripts.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on('console', (message) => {
      if (!['error', 'warning'].includes(message.type())) return
      const document = this.documents.find(({ url }) => url === message.location().url)
      for (const { observed } of document === undefined ? this.suspects : [document])
        observed.complaints.push(message.text())
    })
    page.on('popup', (popup) => {
      for (const { observed } of this.suspects) observed.tabs.push(popup.url())
    })
  }
}

function nothing(): Observed {
  return { scripts: [], requests: [], navigations: [], tabs: [], complaints: [] }
}

/** Null for the first request of a new tab, which has no frame yet. */
function frameOf(request: Request): Frame | null {
  try {
    return request.frame()
  } catch {
    return null
  }
}

function pageWith(documents: readonly ShownDocument[], sandbox: string | null): string {
  const attribute = sandbox === null ? '' : ` sandbox="${sandbox}"`
  const { width, height } = FRAME
  const frames = documents.map(
    ({ url }) => `<iframe src="${url}" width="${width}" height="${height}"${attribute}></iframe>`,
  )
  return (
    `<!doctype html><title>page</title>` +
    `<style>body { margin: 0 } iframe { border: 0; float: left } button { display: block; height: ${BUTTON_HEIGHT}px }</style>` +
    `<button id="button" onclick="document.title = 'clicked'">Click</button>${frames.join('')}`
  )
}
