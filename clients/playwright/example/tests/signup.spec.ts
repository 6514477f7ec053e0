import { expect, test } from '@mayfly/playwright'

test.beforeEach(async ({ page, inbox }) => {
  await page.goto('/')
  await page.getByLabel('Email').fill(inbox.address)
  await page.getByRole('button', { name: 'Sign up' }).click()
})

test('signs up with the code', async ({ page, inbox }) => {
  await page.getByLabel('Code').fill(await inbox.waitForCode())
  await page.getByRole('button', { name: 'Confirm' }).click()
  await expect(page.getByRole('heading')).toHaveText(`Welcome, ${inbox.address}`)
})

test('signs up with the link', async ({ page, inbox }) => {
  const message = await inbox.waitForMessage({ subject: 'Your code' })
  await message.clickLink(page, /verify/)
  await expect(page.getByRole('heading')).toHaveText(`Welcome, ${inbox.address}`)
})

test('sends a mail that a person can read', async ({ page, inbox }) => {
  const message = await inbox.waitForMessage()
  await message.open(page)
  await expect(page.getByRole('img', { name: 'Example' })).toBeVisible()
  await page.getByRole('link', { name: 'Verify your address' }).click()
  await expect(page.getByRole('heading')).toHaveText(`Welcome, ${inbox.address}`)
})

test('sends one mail per signup', async ({ inbox, inboxes }) => {
  await expect(inbox).toHaveReceived({ subject: 'Your code', hasLink: true })
  const other = await inboxes.create()
  await expect(other).not.toHaveReceived({ timeout: 500 })
})
