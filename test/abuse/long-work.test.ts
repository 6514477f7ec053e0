import { setTimeout as pause } from 'node:timers/promises'
import { accountOn } from '#test/harness/accounts.js'
import { call, createInbox, mail, messagesOf, only, send, type Target } from '#test/harness/client.js'
import { startEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { attackBeside, IS_LONG, MEMORY_SETTINGS } from './bystander.js'

/*
 * Attacks of one account on others with requests that take long, or that need much more time than others: comparisons,
 * bulk requests, the schemas of the tools of MCP, checks of links and HTML, and deliveries to many webhooks.
 */

const LINES = IS_LONG ? 400_000 : 10_000
const INBOXES = IS_LONG ? 10_000 : 500
const LISTS_AT_ONCE = 20
const CHECKS_AT_ONCE = 10
/** All links of a mail that are requested. */
const LINKS = 100
const WEBHOOKED_INBOXES = 6
/** The maximum of an inbox. */
const WEBHOOKS_PER_INBOX = 20
const MAILS_PER_SECOND = 5
const SECONDS = IS_LONG ? 10 : 2

describe('an account with long requests', () => {
  let mayfly: Mayfly
  let attacker: Target
  let other: Target

  beforeAll(async () => {
    mayfly = await startMayfly({
      hasWebhooks: true,
      env: {
        ...{ ...MEMORY_SETTINGS, MAYFLY_MCP: 'true', MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' },
        // The large mail has its HTML also on a busy machine.
        ...{ MAYFLY_PARSE_PATIENCE_MS: '60000', MAYFLY_PARSE_TIMEOUT_MS: '60000' },
      },
    })
    attacker = await accountOn(mayfly)
    other = await accountOn(mayfly)
  })
  afterAll(() => mayfly.dispose())

  it('can’t delay others with a large comparison', async () => {
    const line = (n: number) => JSON.stringify({ recipient: `a${n}@example.com`, id: `<${n}@load.example>` })
    const body = Array.from({ length: LINES }, (_, n) => line(n)).join('\n')
    const headers = { 'content-type': 'application/x-ndjson' }
    await attackBeside(mayfly, other, async () => {
      const answer = await call<string>(attacker, 'POST', '/v1/runs/run:1/verify', { headers, body })
      expect(answer.status).toBe(200)
      expect(answer.body).toContain(`"missing":${LINES}`)
    })
  })

  it('can’t delay others with bulk requests', async () => {
    await attackBeside(mayfly, other, async () => {
      const body = { count: INBOXES, labels: { run: '1' } }
      expect((await call(attacker, 'POST', '/v1/inboxes/bulk', { body })).status).toBe(201)
      const label = { label: 'run:1' }
      const deleted = await call(attacker, 'POST', '/v1/inboxes/bulk-delete', { body: label })
      expect(deleted.body).toEqual({ deleted: INBOXES, remaining: 0 })
    })
  })

  it('can’t delay others with lists of the tools of MCP', async () => {
    await attackBeside(mayfly, other, async () => {
      const endsAtMs = performance.now() + SECONDS * 1_000
      const headers = {
        authorization: `Bearer ${attacker.apiKey}`,
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
      const list = async () => {
        const answer = await fetch(`${attacker.url}/mcp`, { method: 'POST', headers, body })
        expect(answer.status).toBe(200)
        expect(await answer.json()).toHaveProperty('result.tools')
      }
      const listAgain = async () => {
        while (performance.now() < endsAtMs) await list()
      }
      await Promise.all(Array.from({ length: LISTS_AT_ONCE }, listAgain))
    })
  })

  it('can’t delay others with checks of links and HTML', async () => {
    const endpoint = await startEndpoint()
    try {
      const { id, address } = await createInbox(attacker)
      const links = Array.from({ length: LINKS }, (_, n) => `<a href="${endpoint.url}/${n}">x</a>`)
      const html = `${links.join('\r\n')}${'<br style="a:b;c:1px">\r\n'.repeat(50_000)}`
      await send(attacker, address, ['Content-Type: text/html', '', html].join('\r\n'))
      const message = `/v1/inboxes/${id}/messages/${only(await messagesOf(attacker, id, 1)).id}`
      await attackBeside(mayfly, other, async () => {
        const endsAtMs = performance.now() + SECONDS * 1_000
        const checkAgain = async () => {
          while (performance.now() < endsAtMs) {
            expect([200, 503]).toContain((await call(attacker, 'GET', `${message}/html-check`)).status)
            const { status, body } = await call<object[]>(attacker, 'POST', `${message}/link-check`)
            if (status === 200) expect(body).toHaveLength(LINKS)
            else expect(status).toBe(503)
          }
        }
        await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, checkAgain))
      })
      expect(endpoint.requests.length).toBeGreaterThan(0)
    } finally {
      await endpoint.dispose()
    }
  })

  it('can’t delay others with deliveries to many webhooks', async () => {
    const endpoint = await startEndpoint()
    try {
      const inboxes = await Promise.all(
        Array.from({ length: WEBHOOKED_INBOXES }, () => createInbox(attacker)),
      )
      for (const { id } of inboxes) {
        for (let n = 0; n < WEBHOOKS_PER_INBOX; n += 1) {
          await registerWebhook(attacker, `/v1/inboxes/${id}/webhooks`, { url: `${endpoint.url}?n=${n}` })
        }
      }
      const addresses = inboxes.map(({ address }) => address)
      await attackBeside(mayfly, other, async () => {
        for (let n = 0; n < SECONDS * MAILS_PER_SECOND; n += 1) {
          await Promise.all([send(attacker, addresses, mail(`${n}`)), pause(1_000 / MAILS_PER_SECOND)])
        }
      })
      expect(endpoint.requests.length).toBeGreaterThan(0)
    } finally {
      await endpoint.dispose()
    }
  })
})
