import { mintId } from '#libs/domain/ids/mint.js'
import { memoryRateLimits } from '#libs/ports/rate-limit/memory-rate-limits.js'
import { makeSecretKey } from '#libs/ports/key-vault/sealing.js'
import { masterKeys } from '#libs/engines/distributed/key-vault/logged-key-vault-harness.contract.js'
import { RateLimitsUnavailableError } from '#libs/ports/rate-limit/rate-limits.js'
import { Throttle } from '../access/request-limits.js'
import { RenderTickets } from './render-tickets.js'

const keys = masterKeys(makeSecretKey().toString('base64'))
const start = new Date('2026-03-01T10:00:00Z')
const shown = {
  accountId: mintId('acc'),
  environment: 'e'.repeat(64),
  inboxId: mintId('inb'),
  messageId: mintId('msg'),
  holderId: mintId('key'),
  isRemoteAllowed: false,
}
const notFound = { code: 'not-found' }

function ticketsAt(time: () => Date, limits = memoryRateLimits()) {
  return new RenderTickets(keys, new Throttle(limits, () => undefined), time)
}

describe('a ticket', () => {
  it('shows its message once, on any instance that shares the limits', async () => {
    const limits = memoryRateLimits()
    const [one, other] = [ticketsAt(() => start, limits), ticketsAt(() => start, limits)]
    const { ticket } = one.issue(shown)
    expect(await other.use(ticket)).toMatchObject(shown)
    await expect(other.use(ticket)).rejects.toMatchObject(notFound)
    await expect(one.use(ticket)).rejects.toMatchObject(notFound)
    expect(await one.use(one.issue(shown).ticket)).toMatchObject(shown)
  })

  it('is valid for 60 seconds', async () => {
    let now = start
    const tickets = ticketsAt(() => now)
    const { ticket, expiresAt } = tickets.issue(shown)
    expect(expiresAt).toEqual(new Date('2026-03-01T10:01:00Z'))
    now = expiresAt
    await expect(tickets.use(ticket)).rejects.toMatchObject(notFound)
    now = new Date(expiresAt.getTime() - 1)
    expect(await tickets.use(ticket)).toMatchObject(shown)
  })

  it('is not accepted while it is unknown whether it was used', async () => {
    const fail = () => Promise.reject(new RateLimitsUnavailableError('away'))
    const tickets = ticketsAt(() => start, { consume: fail, charge: fail, peek: fail })
    await expect(tickets.use(tickets.issue(shown).ticket)).rejects.toMatchObject({
      code: 'read-model-unavailable',
    })
  })
})
