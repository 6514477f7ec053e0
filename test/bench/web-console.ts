import { gzipSync } from 'node:zlib'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, Page, Request } from 'playwright-core'
import { Mayfly } from '#clients/typescript/src/mayfly.js'
import { newLink, startBrowser } from '#test/harness/browser.js'
import { findChromium } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { median, type Figure } from './figure.js'
import { cpuBesideConsoles } from './open-consoles.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject, type InboxHandle } from './subject.js'
import { verificationMail } from './verification-mail.js'

const INBOXES = 100
const SHOWN_MAILS = 20
const SHOWN_EVERY_MS = 300
const FLOOD_MAILS = 1_000
const FLOOD_MS = 10_000
const SENDERS = 4
/** Browsers report no shorter tasks (Long Tasks API). */
const SHORTEST_LONG_TASK_MS = 50

/**
 * Runs in the page before its scripts: notes when each mail and inbox of a list is first in a frame, by its name, and the
 * long tasks.
 */
const NOTES = `
  globalThis.shownAt = new Map()
  globalThis.longTasks = []
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask', buffered: true })
  new MutationObserver(() => {
    for (const line of document.querySelectorAll('.message-row .subject, .sidebar .inboxes .name')) {
      const { textContent } = line
      if (shownAt.has(textContent)) continue
      shownAt.set(textContent, null)
      requestAnimationFrame(() => shownAt.set(textContent, Date.now()))
    }
  }).observe(document, { subtree: true, childList: true, characterData: true })
`

/** The web console in Chromium, and what open consoles cost the server. */
export const webConsole: Section = async ({ plan, profileDir, say }) => {
  if (findChromium() === null) {
    say('skipped: it needs Chromium: apt-get install chromium-headless-shell, or chromium')
    return []
  }
  const subject = await Subject.start(profileDir)
  const browser = await startBrowser()
  try {
    const [inbox] = await subject.createInboxes(INBOXES)
    if (inbox === undefined) throw new Error('there is no inbox')
    const loads: FirstLoad[] = []
    for (let round = 0; round < plan.rounds; round += 1) loads.push(await firstLoad(browser, subject))
    const shown = await untilShown(browser, subject, inbox)
    const longest: number[] = []
    for (let round = 0; round < plan.rounds; round += 1) longest.push(await longestTask(browser, subject))
    return [
      {
        name: `console, first row of ${INBOXES} inboxes, cold cache`,
        unit: 'ms',
        rounds: loads.map(({ ms }) => ms),
        target: { atMost: 300 },
      },
      {
        name: 'files of the first load, gzipped',
        unit: 'kB',
        rounds: loads.map(({ fileBytes }) => fileBytes / 1_000),
        target: { atMost: 130 },
        note: `The answers of the API besides have ${((loads[0]?.dataBytes ?? NaN) / 1_000).toFixed(1)} kB, gzipped.`,
      },
      {
        name: 'readable to shown in the console, p50',
        unit: 'ms',
        rounds: [median(shown)],
        target: { atMost: 250 },
      },
      {
        name: 'readable to shown in the console, max',
        unit: 'ms',
        rounds: [Math.max(...shown)],
        target: { atMost: 250 },
      },
      {
        name: `longest task of the console, ${FLOOD_MAILS / (FLOOD_MS / 1_000)} mails/s`,
        unit: 'ms',
        rounds: longest,
        target: { atMost: 200 },
        note: `Tasks of less than ${SHORTEST_LONG_TASK_MS} ms count as ${SHORTEST_LONG_TASK_MS} ms.`,
      },
      ...(await cpuBesideConsoles(subject, plan, say)),
    ] satisfies Figure[]
  } finally {
    await browser.close()
    await subject.dispose()
  }
}

interface FirstLoad {
  ms: number
  fileBytes: number
  dataBytes: number
}

/** From the opening of a sign-in link to the first row of the list. */
async function firstLoad(browser: Browser, { mayfly }: Subject): Promise<FirstLoad> {
  const page = await notingPage(browser)
  const files: Promise<number>[] = []
  const data: Promise<number>[] = []
  page.on('requestfinished', (finished) => {
    const { pathname } = new URL(finished.url())
    const isFile = pathname === '/console' || pathname.startsWith('/console/files/')
    ;(isFile ? files : data).push(gzippedBytes(finished))
  })
  await page.goto(await newLink(mayfly))
  const shownAt = await firstShown(page)
  const startedAt = await page.evaluate<number>('performance.timeOrigin')
  const load = { ms: shownAt - startedAt, fileBytes: await sumOf(files), dataBytes: await sumOf(data) }
  await page.context().close()
  return load
}

/** Milliseconds from the end of a wait for a mail to the first frame in which the open list of messages has it. */
async function untilShown(browser: Browser, { mayfly }: Subject, { id }: InboxHandle): Promise<number[]> {
  const inbox = await new Mayfly(mayfly).inboxes.get(id)
  const page = await openInbox(browser, mayfly, id)
  const smtp = await SmtpClient.open(mayfly.smtpPort)
  const delays: number[] = []
  // The first mails warm up and do not count.
  const warmUp = 3
  for (let number = -warmUp; number < SHOWN_MAILS; number += 1) {
    const waiting = inbox.waitForMessage({ since: await inbox.cursor() })
    await smtp.send(inbox.address, verificationMail(number + warmUp, inbox.address))
    const { subject } = await waiting
    const readableAt = Date.now()
    const shownAt = await until('the mail in the list', () =>
      page.evaluate<number | null>(`shownAt.get(${JSON.stringify(subject)}) ?? null`),
    )
    if (number >= 0) delays.push(shownAt - readableAt)
    await pause(SHOWN_EVERY_MS)
  }
  smtp.close()
  await page.context().close()
  return delays
}

/** The longest task of a page that shows an inbox while mail arrives in it. */
async function longestTask(browser: Browser, subject: Subject): Promise<number> {
  const { mayfly } = subject
  const { id, address } = await subject.createInbox()
  const page = await openInbox(browser, mayfly, id)
  await page.evaluate('longTasks.length = 0')
  const startedAtMs = performance.now()
  let next = 0
  const work = async () => {
    const smtp = await SmtpClient.open(mayfly.smtpPort)
    for (let number = next++; number < FLOOD_MAILS; number = next++) {
      const slotMs = startedAtMs + (number * FLOOD_MS) / FLOOD_MAILS
      await pause(Math.max(slotMs - performance.now(), 0))
      await smtp.send(address, verificationMail(number, address))
    }
    smtp.close()
  }
  await Promise.all(Array.from({ length: SENDERS }, work))
  await page.locator(`li[aria-setsize="${FLOOD_MAILS}"]`).first().waitFor()
  const longest = await page.evaluate<number>('Math.max(...longTasks, 0)')
  await page.context().close()
  return Math.max(longest, SHORTEST_LONG_TASK_MS)
}

async function openInbox(browser: Browser, mayfly: Subject['mayfly'], id: string): Promise<Page> {
  const page = await notingPage(browser)
  await page.goto(await newLink(mayfly))
  await page.locator('.inboxes li').first().waitFor()
  await page.goto(`${mayfly.url}/console/inboxes/${id}`)
  await page.locator('.live').waitFor()
  return page
}

/** A page in a browser context of its own, with an empty cache. */
async function notingPage(browser: Browser): Promise<Page> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.addInitScript({ content: NOTES })
  return page
}

/** When the page first showed a row of a list. */
function firstShown(page: Page): Promise<number> {
  return until('a row', () => page.evaluate<number | null>('[...shownAt.values()].find(Boolean) ?? null'))
}

async function gzippedBytes(finished: Request): Promise<number> {
  const response = await finished.response()
  return response === null ? 0 : gzipSync(await response.body(), { level: 9 }).length
}

async function sumOf(values: readonly Promise<number>[]): Promise<number> {
  return (await Promise.all(values)).reduce((sum, value) => sum + value, 0)
}
