import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'
import { createInbox, messagesOf, only, send } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { HOSTILE_MAILS, type Effect, type HostileMail } from './hostile-mails.js'
import { WatchedBrowser, type Framed, type Observed, type ShownDocument } from './watched-browser.js'

const FOLDER = 'test/console/hostile-mails'
/** As the console's frame has it. */
const SANDBOX = 'allow-popups allow-popups-to-escape-sandbox'
const NOTHING: Observed = { scripts: [], requests: [], navigations: [], tabs: [], complaints: [] }
/** For documents that the policy has to stop: it complains. */
const NOTHING_BUT_COMPLAINTS = { ...NOTHING, complaints: expect.any(Array) as unknown }

interface Ticket {
  url: string
  blocked: number
  code?: string
}

it('the table has every mail', async () => {
  const files = (await readdir(FOLDER)).map((name) => basename(name, '.eml'))
  expect(HOSTILE_MAILS.map(({ file }) => file).toSorted()).toEqual(files.toSorted())
})

describeWith('chromium')('hostile mail', () => {
  let mayfly: SharedMayfly
  let browser: WatchedBrowser

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    browser = await WatchedBrowser.launch(mayfly.url)
  })
  afterAll(() => browser.close())

  /** Sends a mail. Resolves with its HTML, and a function that asks to show it. */
  async function received(source: string | Buffer) {
    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, source)
    const { id, html } = only(await messagesOf(mayfly, inbox.id, 1))
    const ask = async (options: { remote?: true } = {}): Promise<Ticket> => {
      const response = await fetch(`${mayfly.url}/console/render`, {
        method: 'POST',
        headers: { authorization: `Bearer ${mayfly.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ inbox_id: inbox.id, message_id: id, ...options }),
      })
      return (await response.json()) as Ticket
    }
    return { html: html ?? '', ask }
  }

  /** Loads a document without a browser. */
  async function load({ url }: Ticket) {
    const response = await fetch(mayfly.url + url)
    const policy = response.headers.get('content-security-policy') ?? ''
    return { html: await response.text(), headers: { 'content-security-policy': policy } }
  }

  it.each(HOSTILE_MAILS)(
    'does nothing: $file. $attack',
    async ({ file, effects, isRefused }: HostileMail) => {
      const { html, ask } = await received(await readFile(`${FOLDER}/${file}.eml`))
      const ticket = await ask()
      if (isRefused === true) {
        expect(ticket.code).toBe('html-too-complex')
        return
      }
      const sanitised = await load(await ask())
      await Promise.all([
        showsNothing({ document: ticket, sandbox: SANDBOX }, file !== 'frameset'),
        ticket.blocked > 0 && loadsOnlyImages(await ask({ remote: true }), effects.includes('request')),
        // The sanitiser suffices, and so does the policy.
        showsNothing({ document: { html: sanitised.html }, sandbox: null }, file !== 'frameset'),
        effects.length > 0 && isStopped({ document: { html, headers: sanitised.headers }, sandbox: null }),
        // Without either the attack succeeds.
        effects.length > 0 && succeeds({ document: { html }, sandbox: null }, effects),
      ])
    },
  )

  function showsNothing(framed: Framed, hasText: boolean): Promise<void> {
    return browser.show(framed, async (shown) => {
      const text = await shown.frame.locator('body').innerText()
      if (hasText) expect(text).toContain('Hello, tester.')
      expect(shown.observed).toEqual(NOTHING)
      await clickTarget(shown)
    })
  }

  function loadsOnlyImages(document: Ticket, hasSome: boolean): Promise<void> {
    return browser.show({ document, sandbox: SANDBOX }, ({ observed }) => {
      expect(observed).toEqual({ ...NOTHING_BUT_COMPLAINTS, requests: expect.any(Array) as unknown })
      if (hasSome) expect(observed.requests.length).toBeGreaterThan(0)
      for (const { type, referrer } of observed.requests) {
        // Chromium calls the images of masks others.
        expect(['image', 'other']).toContain(type)
        expect(referrer).toBeUndefined()
      }
      return Promise.resolve()
    })
  }

  function isStopped(framed: Framed): Promise<void> {
    return browser.show(framed, ({ observed }) => {
      expect(observed).toEqual(NOTHING_BUT_COMPLAINTS)
      return Promise.resolve()
    })
  }

  function succeeds(framed: Framed, effects: readonly Effect[]): Promise<void> {
    return browser.show(framed, async (shown) => {
      await shown.click('#target')
      const { scripts, requests, navigations } = shown.observed
      const seen: Record<Effect, unknown[]> = { script: scripts, request: requests, navigation: navigations }
      for (const effect of effects) await until(`the ${effect}`, () => seen[effect].length > 0)
    })
  }

  /** Clicks the element that a mail wants to be clicked. A link opens the target that it shows, in a tab of its own. */
  async function clickTarget(shown: ShownDocument): Promise<void> {
    const { frame, page, observed } = shown
    const link = frame.locator('a#target[href]')
    if ((await link.count()) === 0) {
      await shown.click('#target')
      await shown.settle()
      expect(observed).toEqual(NOTHING)
      return
    }
    const [tab] = await Promise.all([page.waitForEvent('popup'), shown.click('a#target')])
    await tab.waitForLoadState()
    expect(tab.url()).toBe(await link.getAttribute('title'))
    expect(await tab.evaluate('opener')).toBeNull()
    const { tabs: _, ...others } = NOTHING
    const request = { url: tab.url(), type: 'document', referrer: undefined }
    expect(observed).toMatchObject({ ...others, requests: [request] })
  }

  it('is never loaded by the server', async () => {
    const requests: string[] = []
    const server = createServer(({ url = '' }, response) => {
      requests.push(url)
      response.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      const url = `http://127.0.0.1:${port}`
      const html = `<link rel=stylesheet href=${url}/a><style>@import "${url}/b"</style><img src=${url}/c>`
      const { ask } = await received(`Content-Type: text/html\r\n\r\n${html}\r\n`)
      for (const ticket of [await ask(), await ask({ remote: true })])
        expect((await load(ticket)).html).toMatch(/img/)
      expect(requests).toEqual([])
    } finally {
      server.close()
    }
  })
})
