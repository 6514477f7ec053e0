import { expect, test } from '@mayfly/playwright'
import { send } from './mail.js'

// Each of these tests fails. playwright.test.ts checks the report.
test('does not receive what it expects', async ({ inbox, inboxes }) => {
  const other = await inboxes.create({ labels: { kind: 'second' } })
  for (const number of [1, 2, 3, 4])
    await send({ to: inbox.address, subject: `Welcome ${number}`, text: 'Hello' })
  for (const number of [5, 6])
    await send({ to: other.address, subject: `Welcome ${number}`, html: '<b>Hello</b>' })
  await inbox.waitForMessage({ subject: 'Welcome 4' })
  await other.waitForMessage({ subject: 'Welcome 6' })
  await expect(inbox).toHaveReceived({ subject: 'Goodbye', timeout: 500 })
})

test('receives what it does not expect', async ({ inbox }) => {
  await send({ to: inbox.address, subject: 'Welcome', text: 'Hello' })
  await expect(inbox).not.toHaveReceived({ subject: 'welcome' })
})

test('waits by default for less than the time of the test', async ({ inbox }) => {
  await inbox.waitForCode()
})

test('runs out of time', async ({ inbox }) => {
  await send({ to: inbox.address, subject: 'Before the end', text: 'Hello' })
  await inbox.waitForMessage({ subject: 'Before the end' })
  await inbox.waitForCode({ timeoutMs: 60_000 })
})

test('has deleted its inbox', async ({ inbox }) => {
  await inbox.delete()
  await inbox.waitForMessage()
})

test('misses a link', async ({ inbox, page }) => {
  await send({ to: inbox.address, text: 'Go to https://app.example/verify?t=1' })
  const message = await inbox.waitForMessage()
  await message.clickLink(page, /unsubscribe/)
})
