import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import type { Target } from './client.js'
import { findChromium } from './tools.js'

/** Debian's Chromium. As root it runs without its own sandbox, as it requires. */
export function startBrowser(args: readonly string[] = []): Promise<Browser> {
  const executablePath = findChromium() ?? ''
  const ofRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath, args: [...ofRoot, ...args] })
}

export interface ConsolePage {
  page: Page
  /** Errors of scripts and of the browser's console, such as violations of the content security policy. */
  errors: string[]
}

/** A page of the console in its own browser context, signed in with a new link. */
export async function openConsole(
  browser: Browser,
  mayfly: Target,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const opened = await openLink(browser, await newLink(mayfly), options)
  await opened.page.getByRole('heading', { name: 'All mail', level: 1 }).waitFor()
  return opened
}

/** Opens a sign-in link or an invitation in its own browser context. */
export async function openLink(
  browser: Browser,
  link: string,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'], ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text())
  })
  await page.goto(link)
  return { page, errors }
}

/** Opens a URL of the console, and waits until everything in it is loaded. */
export async function openView(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await page.locator('main:not(.loading)').waitFor()
  await page.locator('.loading').first().waitFor({ state: 'detached' })
}

/** A link that signs in once. */
export async function newLink({ url, apiKey }: Target): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}` }
  const answer = await fetch(`${url}/console/links`, { method: 'POST', headers })
  return ((await answer.json()) as { url: string }).url
}
