import type * as Client from '@mayfly/client'
import { expect, test } from '@mayfly/playwright'

test('the client works in a page', async ({ page }) => {
  await page.route('http://app.example/**', (route) =>
    new URL(route.request().url()).pathname === '/client.js'
      ? route.fulfill({ path: 'node_modules/@mayfly/client/dist/mayfly.js', contentType: 'text/javascript' })
      : route.fulfill({ body: '<!doctype html>', contentType: 'text/html' }),
  )
  await page.goto('http://app.example/')
  const seen = await page.evaluate(
    async ({ url, apiKey }) => {
      const module = '/client.js'
      const { Mayfly } = (await import(module)) as typeof Client
      // The inbox is deleted once the stream is open: a stream of a deleted inbox is refused.
      const fetchAndDelete: typeof fetch = async (input, init) => {
        const response = await fetch(input, init)
        if (response.url.includes('/events')) void inbox.delete()
        return response
      }
      const inbox = await new Mayfly({ url, apiKey, fetch: fetchAndDelete }).inboxes.create()
      const events: string[] = []
      for await (const { event } of inbox.events()) events.push(event)
      return events
    },
    { url: process.env.MAYFLY_URL, apiKey: process.env.MAYFLY_KEY },
  )
  expect(seen).toEqual(['inbox.deleted'])
})
