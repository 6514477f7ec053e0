import { mkdir } from 'node:fs/promises'
import { openConsole, openView, startBrowser } from '#test/harness/browser.js'
import { call, createInbox, mail, messagesOf, send } from '#test/harness/client.js'
import { startEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'

/*
 * Writes the screenshots of docs/console.md, from a Mayfly on the embedded engine with mail of an invented shop.
 */

const FOLDER = 'docs/images'
const SIZE = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 780 }

const WELCOME = [
  'From: Shop <no-reply@shop.example>',
  'To: someone@mayfly.test',
  'Subject: Confirm your address',
  'MIME-Version: 1.0',
  'Content-Type: text/html; charset=utf-8',
  '',
  '<div style="font-family: sans-serif; max-width: 480px; margin: 24px auto; color: #223">',
  '<h1 style="color: #0b57d0">Welcome to the shop</h1>',
  '<p>Your confirmation code is <b style="font-size: 1.4em">493 201</b>.</p>',
  '<p><a href="https://shop.example/confirm?token=8d1f" style="background: #0b57d0; color: #fff;',
  ' padding: 10px 18px; border-radius: 6px; text-decoration: none">Confirm the address</a></p>',
  '<p><img src="https://shop.example/banner.png" alt="" width="480"></p>',
  '</div>',
  '',
].join('\r\n')

/** Creates what the pictures show. Resolves with the paths of the views. */
async function prepare(mayfly: Mayfly, endpointUrl: string): Promise<Record<string, string>> {
  for (const name of ['Password reset', 'Invoice', 'Newsletter'])
    await createInbox(mayfly, { name, labels: { team: 'web' } })
  const inbox = await createInbox(mayfly, { name: 'Sign-up', labels: { run: '42', team: 'web' } })
  const { body: webhook } = await call<{ id: string }>(mayfly, 'POST', '/v1/webhooks', {
    body: { url: endpointUrl },
  })
  for (const subject of ['Your order', 'Your order was shipped', 'Rate your order'])
    await send(mayfly, inbox.address, mail(subject))
  await send(mayfly, inbox.address, WELCOME)
  const message = (await messagesOf(mayfly, inbox.id, 4)).at(-1)
  await until('deliveries', async () => {
    const path = `/v1/webhooks/${webhook.id}/deliveries?state=pending`
    const { body } = await call<{ attempts: unknown[] }[]>(mayfly, 'GET', path)
    return body.length > 0 && body.every(({ attempts }) => attempts.length > 0)
  })
  await until('counted usage', async () => {
    const { body } = await call<{ mails: number }>(mayfly, 'GET', '/v1/usage/report?label=run:42')
    return body.mails === 4
  })
  return {
    inboxes: '/console/inboxes',
    mail: `/console/inboxes/${inbox.id}?message=${message?.id}`,
    keys: '/console/keys',
    webhook: `/console/webhooks/${webhook.id}`,
    usage: '/console/usage?label=run:42',
  }
}

async function main(): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  const endpoint = await startEndpoint((response) => {
    response.statusCode = 503
    response.end('The shop is closed.')
  })
  const mayfly = await startMayfly({
    engine: 'embedded',
    hasAnalytics: true,
    env: { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' },
  })
  const browser = await startBrowser()
  try {
    const paths = await prepare(mayfly, endpoint.url)
    const { page } = await openConsole(browser, mayfly, { viewport: SIZE })
    const take = async (name: string, path: string) => {
      await openView(page, mayfly.url + path)
      if (path === paths.mail) await page.frameLocator('iframe').getByText('Welcome to the shop').waitFor()
      await page.screenshot({ path: `${FOLDER}/console-${name}.png` })
    }
    for (const [name, path] of Object.entries(paths)) await take(name, path)
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize(PHONE)
    await take('phone', paths.mail ?? '')
  } finally {
    await browser.close()
    await mayfly.dispose()
    await endpoint.dispose()
  }
}

await main()
