import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PageInbox } from '@mayfly/playwright'
import { expect, test as base } from '@mayfly/playwright'
import { send } from './mail.js'

const SITE = '<link rel="icon" href="data:,">the site'

interface Fixtures {
  /** A site that the page has visited, which set a cookie, and the paths that were requested from it. */
  site: { url: string; requests: string[] }
}

const test = base.extend<Fixtures>({
  site: async ({ page }, use) => {
    const requests: string[] = []
    const server = createServer((request, response) => {
      requests.push(request.url ?? '')
      response.writeHead(200, { 'Content-Type': 'text/html', 'Set-Cookie': 'session=secret' }).end(SITE)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await page.goto(url)
    requests.length = 0
    await use({ url, requests })
    server.close()
  },
})

/** The only message, once it has arrived. */
async function receive(inbox: PageInbox, mail: Parameters<typeof send>[0]) {
  await send({ to: inbox.address, ...mail })
  return inbox.waitForMessage()
}

test('runs no script, loads nothing and stays where it is', async ({ page, inbox, site }) => {
  const attack = (path: string) =>
    `fetch('${site.url}/${path}?' + document.cookie); document.title = 'attacked'`
  const html = `<!doctype html><html><head>
    <meta HTTP-Equiv="refresh" content="0;url=${site.url}/refresh">
    <script>${attack('script')}</script>
    <link rel="stylesheet" href="${site.url}/style">
    <style>@import url(${site.url}/import); h1 { background: url(${site.url}/background) }</style></head>
    <body onload="${attack('onload')}"><h1>Hostile</h1>
    <img src="${site.url}/image" onerror="${attack('onerror')}">
    <iframe src="${site.url}/frame"></iframe>
    <iframe srcdoc="<script>${attack('srcdoc')}</script><meta &#104;ttp-equiv='refresh' content='0;url=${site.url}/inner'>"></iframe>
    <object data="${site.url}/object"></object><video src="${site.url}/video" autoplay></video>
    <svg onload="${attack('svg')}"></svg><a href="javascript:${attack('link')}">click</a></body></html>`
  const message = await receive(inbox, { html })
  await message.open(page)
  await expect(page.getByRole('heading', { name: 'Hostile' })).toBeVisible()
  await page.getByRole('link', { name: 'click' }).click()
  await page.waitForTimeout(1_000)
  expect(site.requests).toEqual([])
  expect(page.url()).toBe('about:blank')
  expect(await page.title()).toBe('')
})

test('has no cookies of the site', async ({ page, inbox, site }) => {
  const message = await receive(inbox, { html: '<h1>Hello</h1>' })
  expect(await page.evaluate('document.cookie')).toBe('session=secret')
  await message.open(page)
  expect(await page.evaluate('self.origin')).toBe('null')
  const cookie = page.evaluate('document.cookie').catch((error: unknown) => String(error))
  expect(await cookie).toMatch(/^$|SecurityError|denied/)
  expect(site.requests).toEqual([])
})

test('loads images from the web on request', async ({ page, inbox, site }) => {
  const html = `<img src="${site.url}/image"><script src="${site.url}/script"></script>`
  const message = await receive(inbox, { html })
  await message.open(page, { allowRemote: true })
  await expect.poll(() => site.requests).toEqual(['/image'])
})

test('shows embedded images', async ({ page, inbox }) => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"></svg>'
  const html =
    '<img alt="first" src="cid:logo@app.example"><p style="background: url(cid:logo@app.example)">Hi</p>'
  const message = await receive(inbox, {
    html,
    attachments: [
      { filename: 'logo.svg', content: svg, contentType: 'image/svg+xml', cid: 'logo@app.example' },
    ],
  })
  await message.open(page)
  const size = await page.evaluate('[document.images[0].naturalWidth, document.images[0].naturalHeight]')
  expect(size).toEqual([90, 30])
})

test('shows a mail without HTML as text', async ({ page, inbox }) => {
  const message = await receive(inbox, { text: 'Price: <b>1 & 2</b>\n  indented' })
  await message.open(page)
  expect(await page.locator('pre').textContent()).toBe('Price: <b>1 & 2</b>\n  indented\n')
})

test('opens the link that matches', async ({ page, inbox, site }) => {
  const html = `<a href="${site.url}/help">Help</a> <a href="${site.url}/go?t=1">Confirm</a>`
  const message = await receive(inbox, { html })
  await message.clickLink(page, /confirm/i)
  await expect(page).toHaveURL(`${site.url}/go?t=1`)
  await message.clickLink(page, 'HELP')
  await expect(page).toHaveURL(`${site.url}/help`)
})
