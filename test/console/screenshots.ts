import { mkdir } from 'node:fs/promises'
import { openConsole, openView, startBrowser } from '#test/harness/browser.js'
import { call, createInbox, mail, messagesOf, send } from '#test/harness/client.js'
import { startEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { invite, join } from '#test/harness/members.js'
import { until } from '#test/harness/until.js'

/*
 * Writes the screenshots of docs/console.md, from a Mayfly on the embedded engine with mail of an invented shop. With the
 * path of a folder, writes every view there: on a desk and on a phone, in the light and in the dark.
 */

const DESK = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 780 }

const SCREENS = [
  { name: 'desk', size: DESK, colorScheme: 'light' },
  { name: 'desk-dark', size: DESK, colorScheme: 'dark' },
  { name: 'phone', size: PHONE, colorScheme: 'light' },
  { name: 'phone-dark', size: PHONE, colorScheme: 'dark' },
] as const

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

/** One to each of these inboxes. */
const MAILS = [
  ['Newsletter', 'Shop Weekly <news@shop.example>', 'Ten things for the winter', 'Warm, dry and bright.'],
  [
    'Invoice',
    'Billing <billing@shop.example>',
    'Your invoice 2026-1142',
    'Please find the invoice attached.',
  ],
  ['Password reset', 'Shop <no-reply@shop.example>', 'Reset your password', 'Your code is 824913.'],
] as const

/** Resolves once the server has refused a mail. */
async function expect550(sending: Promise<unknown>): Promise<void> {
  await sending.then(
    () => Promise.reject(new Error('the mail was not refused')),
    () => undefined,
  )
}

/** Creates what the pictures show. Resolves with the paths of the views. */
async function prepare(mayfly: Mayfly, endpointUrl: string): Promise<Record<string, string>> {
  const create = (name: string) => createInbox(mayfly, { name, labels: { run: '42', team: 'web' } })
  const { body: webhook } = await call<{ id: string }>(mayfly, 'POST', '/v1/webhooks', {
    body: { url: endpointUrl },
  })
  await call(mayfly, 'POST', '/v1/keys', { body: { name: 'staging', environment: 'staging' } })
  const owner = await join(mayfly, { role: 'owner' })
  await join(owner.target, { role: 'developer', environments: ['development'] })
  await invite(owner.target, { role: 'auditor' })
  for (const [name, sender, subject, text] of MAILS) {
    const { address } = await create(name)
    await send(mayfly, address, `From: ${sender}\r\n${mail(subject, text).replace(/^From:.*\r\n/, '')}`)
  }
  const inbox = await create('Sign-up')
  for (const subject of ['Your order 1042', 'Your order 1042 was shipped', 'Rate your order 1042'])
    await send(
      mayfly,
      inbox.address,
      mail(subject, 'Hello, thank you for your order. We keep you up to date.'),
    )
  await send(mayfly, inbox.address, WELCOME)
  const message = (await messagesOf(mayfly, inbox.id, 4)).at(-1)
  await expect550(send(mayfly, 'sign-up@mayfly.test', mail('A typo')))
  await until('deliveries', async () => {
    const path = `/v1/webhooks/${webhook.id}/deliveries?state=pending`
    const { body } = await call<{ attempts: unknown[] }[]>(mayfly, 'GET', path)
    return body.length > 0 && body.every(({ attempts }) => attempts.length > 0)
  })
  await until('counted usage', async () => {
    const { body } = await call<{ mails: number }>(mayfly, 'GET', '/v1/usage/report?label=run:42')
    return body.mails === 4 + MAILS.length
  })
  return {
    mail: '/console/mail',
    inbox: `/console/inboxes/${inbox.id}?message=${message?.id}`,
    search: '/console/mail?q=from:shop+has:code',
    refused: '/console/refused',
    start: '/console/mail?environment=staging',
    keys: '/console/keys',
    members: '/console/members',
    webhook: `/console/webhooks/${webhook.id}`,
    audit: '/console/audit',
    usage: '/console/usage?label=run:42',
  }
}

async function main([folder]: readonly string[]): Promise<void> {
  const target = folder ?? 'docs/images'
  await mkdir(target, { recursive: true })
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
    const { page } = await openConsole(browser, mayfly, { viewport: DESK })
    const take = async (view: string, { name, size, colorScheme }: (typeof SCREENS)[number]) => {
      await page.setViewportSize(size)
      await page.emulateMedia({ colorScheme })
      await openView(page, mayfly.url + (paths[view] ?? ''))
      if ((size === DESK && view === 'mail') || view === 'inbox')
        await page.frameLocator('iframe').getByText('Welcome to the shop').waitFor()
      const file = name === 'desk' ? view : folder === undefined ? 'phone' : `${view}-${name}`
      await page.screenshot({ path: `${target}/console-${file}.png` })
    }
    const [desk, , , phoneDark] = SCREENS
    if (folder === undefined) {
      for (const view of ['mail', 'search', 'keys', 'webhook', 'usage']) await take(view, desk)
      await take('inbox', phoneDark)
    } else {
      for (const screen of SCREENS) for (const view of Object.keys(paths)) await take(view, screen)
    }
  } finally {
    await browser.close()
    await mayfly.dispose()
    await endpoint.dispose()
  }
}

await main(process.argv.slice(2))
