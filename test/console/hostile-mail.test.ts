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
import {
  WatchedBrowser,
  type Observed,
  type ShownDocument,
  type ShownPage,
  type Source,
} from './watched-browser.js'

const FOLDER = 'test/console/hostile-mails'
/** Mails that share a page. With more it takes long to draw. */
const SIDE_BY_SIDE = 12
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

/** A mail that Mayfly accepts to show, with what the ways of showing it need. */
interface ShowableMail {
  mail: HostileMail
  html: string
  ticket: Ticket
  ticketWithImages: Ticket
  sanitised: { html: string; headers: Record<string, string> }
}

/** What a document did before and after a click on the element that its mail wants to be clicked. */
interface Reaction {
  text: string
  loaded: Observed
  clicked: Observed
  /** The tab that the element opened, if it is a link. */
  tab: PromiseSettledResult<Tab | null>
}

interface Tab {
  url: string
  opener: unknown
  /** The target that the link shows. */
  title: string | null
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

  it.each(HOSTILE_MAILS.filter(({ isRefused }) => isRefused))(
    'is refused: $file. $attack',
    async ({ file }) => {
      const { ask } = await received(await readFile(`${FOLDER}/${file}.eml`))
      expect((await ask()).code).toBe('html-too-complex')
    },
  )

  const groups = groupsOf(HOSTILE_MAILS.filter(({ isRefused }) => !isRefused))
  describe.each(groups)('from $first to $last', ({ mails }) => {
    let outcomes: Awaited<ReturnType<typeof showInEveryWay>>

    beforeAll(async () => {
      outcomes = await showInEveryWay(mails)
    }, 400_000)

    it.each(mails)('does nothing: $file. $attack', ({ file, effects }: HostileMail) => {
      expectNothing(outcomes.shown.get(file), file !== 'frameset')
      const withImages = outcomes.withImages.get(file)
      if (withImages !== undefined) expectOnlyImages(withImages, effects.includes('request'))
      // The sanitiser suffices, and so does the policy.
      expectNothing(outcomes.onlySanitised.get(file), file !== 'frameset')
      if (effects.length === 0) return
      expect(outcomes.onlyPolicy.get(file)).toEqual(NOTHING_BUT_COMPLAINTS)
      // Without either the attack succeeds.
      expect(outcomes.unprotected.get(file)).toEqual(effects)
    })
  })

  /** Sends mails, and shows them side by side in every way. Resolves with what each does, by its file. */
  async function showInEveryWay(mails: readonly HostileMail[]) {
    const all = await Promise.all(mails.map(showable))
    const blocked = all.filter(({ ticket }) => ticket.blocked > 0)
    const armed = all.filter(({ mail }) => mail.effects.length > 0)
    // One page at a time. Drawing them side by side is slower, and a slow machine then takes too long for each.
    const shown = await show(all, ({ ticket }) => ticket, SANDBOX, reactionsOf)
    const withImages = await show(blocked, ({ ticketWithImages }) => ticketWithImages, SANDBOX, observedIn)
    const onlySanitised = await show(all, ({ sanitised: { html } }) => ({ html }), null, reactionsOf)
    const onlyPolicy = await show(
      armed,
      ({ html, sanitised: { headers } }) => ({ html, headers }),
      null,
      observedIn,
    )
    const unprotected = new Map<string, Effect[]>()
    for (const each of armed) unprotected.set(each.mail.file, await effectsWithoutProtection(each))
    return { shown, withImages, onlySanitised, onlyPolicy, unprotected }
  }

  async function showable(mail: HostileMail): Promise<ShowableMail> {
    const { html, ask } = await received(await readFile(`${FOLDER}/${mail.file}.eml`))
    const [ticket, ticketWithImages] = [await ask(), await ask({ remote: true })]
    return { mail, html, ticket, ticketWithImages, sanitised: await load(await ask()) }
  }

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

  /** Shows mails side by side. Resolves with the result of each by its file. */
  async function show<Result>(
    mails: readonly ShowableMail[],
    sourceOf: (mail: ShowableMail) => Source,
    sandbox: string | null,
    use: (shown: ShownPage) => Promise<Result[]>,
  ): Promise<Map<string, Result | undefined>> {
    const results = await browser.show(mails.map(sourceOf), sandbox, use)
    return new Map(mails.map(({ mail }, index) => [mail.file, results[index]]))
  }

  /** Shows a mail alone. Resolves with those of its effects that it has. */
  async function effectsWithoutProtection({
    mail: { file, effects },
    html,
  }: ShowableMail): Promise<Effect[]> {
    return browser.show([{ html }], null, async (shown) => {
      const document = only(shown.documents)
      const { scripts, requests, navigations } = document.observed
      const seen: Record<Effect, unknown[]> = { script: scripts, request: requests, navigation: navigations }
      const effectsSoFar = () => effects.filter((effect) => seen[effect].length > 0)
      const attack = until(`the effects of ${file}`, async () => {
        // The click fails if the attack has replaced the document already, and may miss an element that moves.
        await Promise.allSettled([shown.click(document, '#target')])
        return effectsSoFar().length === effects.length
      })
      // So that a failure is reported for its own mail only.
      await Promise.allSettled([attack])
      return effectsSoFar()
    })
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

function groupsOf(mails: readonly HostileMail[]) {
  const groups = Map.groupBy(mails, (_, index) => Math.floor(index / SIDE_BY_SIDE))
  return Array.from(groups.values(), (group) => ({
    first: group[0]?.file,
    last: group.at(-1)?.file,
    mails: group,
  }))
}

function observedIn({ documents }: ShownPage): Promise<Observed[]> {
  return Promise.resolve(documents.map((document) => document.observed))
}

async function reactionsOf(shown: ShownPage): Promise<Reaction[]> {
  const loading = shown.documents.map(async (document) => {
    const text = await document.frame.locator('body').innerText()
    return { document, text, loaded: document.takeObserved() }
  })
  const reactions: Reaction[] = []
  for (const { document, text, loaded } of await Promise.all(loading)) {
    // So that a failure is reported for its own mail only.
    const [tab] = await Promise.allSettled([clickTarget(shown, document)])
    reactions.push({ text, loaded, clicked: document.observed, tab })
  }
  return reactions
}

/** Clicks the element that a mail wants to be clicked. Resolves with the tab that opens if it is a link. */
async function clickTarget(shown: ShownPage, document: ShownDocument): Promise<Tab | null> {
  const link = document.frame.locator('a#target[href]')
  if ((await link.count()) === 0) {
    await shown.click(document, '#target')
    await shown.settle()
    return null
  }
  const [tab] = await Promise.all([shown.page.waitForEvent('popup'), shown.click(document, 'a#target')])
  await tab.waitForLoadState()
  const [opener, title] = [await tab.evaluate('opener'), await link.getAttribute('title')]
  const opened = { url: tab.url(), opener, title }
  await tab.close()
  return opened
}

function expectNothing(reaction: Reaction | undefined, hasText: boolean): void {
  if (hasText) expect(reaction?.text).toContain('Hello, tester.')
  expect(reaction?.loaded).toEqual(NOTHING)
  expect(reaction?.tab).toMatchObject({ status: 'fulfilled' })
  const tab = reaction?.tab.status === 'fulfilled' ? reaction.tab.value : null
  if (tab === null) {
    expect(reaction?.clicked).toEqual(NOTHING)
    return
  }
  const { url, opener, title } = tab
  expect(url).toBe(title)
  expect(opener).toBeNull()
  const requests = [{ url, type: 'document', referrer: undefined }]
  expect(reaction?.clicked).toEqual({ ...NOTHING, requests, tabs: expect.any(Array) as unknown })
}

function expectOnlyImages(observed: Observed | undefined, hasSome: boolean): void {
  expect(observed).toEqual({ ...NOTHING_BUT_COMPLAINTS, requests: expect.any(Array) as unknown })
  const { requests = [] } = observed ?? {}
  if (hasSome) expect(requests.length).toBeGreaterThan(0)
  for (const { type, referrer } of requests) {
    // Chromium calls the images of masks others.
    expect(['image', 'other']).toContain(type)
    expect(referrer).toBeUndefined()
  }
}
