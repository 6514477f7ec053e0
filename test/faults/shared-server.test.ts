import { accountOn } from '#test/harness/accounts.js'
import { createInbox, mail, send, type Target } from '#test/harness/client.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

/** The maximum of an inbox. */
const WEBHOOKS_PER_INBOX = 20
const INBOXES = 8
const ATTEMPT_SLOTS = 400
/** A third of the timeout: a delivery that waits for a hanging attempt is too late. */
const DELIVERED_WITHIN_MS = 20_000
const TIMEOUT_MS = 60_000

describe('a server that does not answer the new webhooks of one account', () => {
  let mayfly: Mayfly
  let server: HttpEndpoint
  let owner: Target
  const addresses: string[] = []

  beforeAll(async () => {
    const env = {
      MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
      MAYFLY_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
      MAYFLY_WEBHOOK_CONCURRENCY: String(ATTEMPT_SLOTS),
    }
    mayfly = await startMayfly({ hasWebhooks: true, env })
    server = await startEndpoint((response, { url }) => {
      if (url !== '/hang') response.end()
    })
    owner = await accountOn(mayfly)
    await prove(owner, '/own')
    await prove(await accountOn(mayfly), '/other')
    const paths = Array.from({ length: WEBHOOKS_PER_INBOX }, () => '/hang')
    const hanging: string[] = []
    for (let n = 0; n < INBOXES; n += 1) hanging.push(await addressWithWebhooks(owner, paths))
    await send(mayfly, hanging, mail('hang'))
    await until('them to hang', () => countAt('/hang') === INBOXES * WEBHOOKS_PER_INBOX)
  })
  afterAll(async () => {
    await mayfly.dispose()
    await server.dispose()
  })

  const countAt = (path: string) => server.requests.filter(({ url }) => url === path).length

  /** Creates an inbox with webhooks to these paths of the server. Resolves with its address. */
  async function addressWithWebhooks(target: Target, paths: readonly string[]): Promise<string> {
    const { id, address } = await createInbox(target)
    for (const path of paths) {
      await registerWebhook(target, `/v1/inboxes/${id}/webhooks`, { url: new URL(path, server.url).href })
    }
    return address
  }

  async function prove(target: Target, path: string): Promise<void> {
    const address = await addressWithWebhooks(target, [path])
    await send(mayfly, address, mail('first'))
    await until('the first delivery', () => countAt(path) === 1)
    addresses.push(address)
  }

  it('gets other deliveries at once, of this account and of another', async () => {
    await send(mayfly, addresses, mail('second'))
    for (const path of ['/own', '/other']) {
      await until(`the second delivery to ${path}`, () => countAt(path) === 2, DELIVERED_WITHIN_MS)
    }
  })
})
