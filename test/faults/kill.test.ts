import { call, createInbox, pagesFrom, type InboxJson, type MessageJson } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { answerToRcpt } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'
import { AcknowledgedWrites } from './acknowledged-writes.js'
import { startLoad } from './load.js'

const ROUNDS = Number(process.env.MAYFLY_FAULT_ROUNDS ?? 5)
const ROUND_MS = 90_000
const MAX_ACKNOWLEDGEMENTS = 150
const DAY_MS = 86_400_000

interface QuotaJson {
  name: string
  used: number
  resets_at: string | null
}

describe('Mayfly, killed at random moments under load', () => {
  const acknowledged = new AcknowledgedWrites()
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true })
    for (let count = 0; count < 5; count += 1) {
      const inbox = await createInbox(mayfly)
      acknowledged.inboxes.set(inbox.id, inbox)
    }
  })
  afterAll(() => mayfly.dispose())

  it(
    `loses nothing that it acknowledged, over ${ROUNDS} rounds on one folder`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const acceptedBefore = new Set(acknowledged.accepted.keys())
        const load = startLoad(mayfly, acknowledged, { senders: 6, creators: 2 })
        const enough = 1 + Math.floor(Math.random() * MAX_ACKNOWLEDGEMENTS)
        await until(`${enough} acknowledgements`, () => load.acknowledgements() >= enough)
        await mayfly.end('SIGKILL')
        await load.stop()

        mayfly = await mayfly.restart()
        await verifyAlwaysKnown(mayfly, [...acknowledged.inboxes.values()].slice(-20))
        await acknowledged.verify(mayfly)
        const fresh = [...acknowledged.accepted.keys()].filter((id) => !acceptedBefore.has(id))
        await acknowledged.verifySources(mayfly, fresh)
        await verifyEveryInboxIsListed(mayfly)
        await verifyQuotas(mayfly)
      }
      await acknowledged.verifySources(mayfly, acknowledged.accepted.keys())
      expect(acknowledged.accepted.size).toBeGreaterThan(ROUNDS)
      process.stdout.write(
        `kill: ${ROUNDS} rounds, ${acknowledged.accepted.size} mails and ${acknowledged.inboxes.size} inboxes acknowledged and kept\n`,
      )
    },
    ROUNDS * ROUND_MS,
  )

  it(
    `accepts exactly as much mail as a quota allows, killed ${ROUNDS} times before it is reached`,
    async () => {
      const limit = (await usedToday(mayfly)) + ROUNDS * MAX_ACKNOWLEDGEMENTS
      await call(mayfly, 'PUT', '/v1/quotas/messages-per-day', { body: { limit } })
      for (let round = 0; round < ROUNDS; round += 1) {
        const load = startLoad(mayfly, acknowledged, { senders: 6, creators: 0 })
        await until('acknowledgements', () => load.acknowledgements() > MAX_ACKNOWLEDGEMENTS / 2)
        await mayfly.end('SIGKILL')
        await load.stop()
        mayfly = await mayfly.restart()
      }
      const load = startLoad(mayfly, acknowledged, { senders: 6, creators: 0, isPersistent: true })
      await until('refusals', () => load.quotaRefusals() >= 6, ROUND_MS)
      await load.stop()
      await acknowledged.verify(mayfly)
      expect(await usedToday(mayfly)).toBe(limit)
      await call(mayfly, 'PUT', '/v1/quotas/messages-per-day', { body: { limit: null } })
    },
    ROUNDS * ROUND_MS,
  )

  async function usedToday(target: Mayfly): Promise<number> {
    const { body } = await call<QuotaJson[]>(target, 'GET', '/v1/quotas')
    return body.find(({ name }) => name === 'messages-per-day')?.used ?? 0
  }

  /** Expects that known inboxes are never answered 404, from the start until the views have caught up. */
  async function verifyAlwaysKnown(target: Mayfly, inboxes: readonly InboxJson[]): Promise<void> {
    for (const { id, address } of inboxes) {
      const answers = await Promise.all([
        call(target, 'GET', `/v1/inboxes/${id}`),
        call(target, 'GET', `/v1/inboxes/${id}/messages`),
        call(target, 'GET', '/v1/inboxes'),
      ])
      for (const { status } of answers) expect([200, 503]).toContain(status)
      if (answers[2].status === 200) expect(answers[2].body).not.toHaveLength(0)
      expect(await answerToRcpt(target, address)).toMatch(/^(250|451) /)
    }
    await until('readiness', async () => (await call(target, 'GET', '/readyz')).status === 200)
  }

  async function verifyEveryInboxIsListed(target: Mayfly): Promise<void> {
    const listed = new Set<string>()
    for (const { body } of await pagesFrom<InboxJson>(target, '/v1/inboxes?limit=1000')) {
      for (const { id, state } of body) {
        expect(state).toBe('active')
        expect(listed.has(id)).toBe(false)
        listed.add(id)
      }
    }
    for (const id of acknowledged.inboxes.keys()) expect(listed).toContain(id)
  }

  /** Expects that the quotas count exactly what there is, and allow exactly one more inbox than that. */
  async function verifyQuotas(target: Mayfly): Promise<void> {
    const all = async <Listed>(path: string) =>
      (await pagesFrom<Listed>(target, path)).flatMap(({ body }) => body)
    const inboxes = await all<InboxJson>('/v1/inboxes?limit=1000')
    const lists = inboxes.map(({ id }) => all<MessageJson>(`/v1/inboxes/${id}/messages?limit=100`))
    const messages = (await Promise.all(lists)).flat()
    const { body: quotas } = await call<QuotaJson[]>(target, 'GET', '/v1/quotas')
    const resetMs = Date.parse(quotas.find(({ name }) => name === 'inboxes-per-day')?.resets_at ?? '')
    const ofToday = (times: string[]) => times.filter((time) => Date.parse(time) >= resetMs - DAY_MS).length
    expect(Object.fromEntries(quotas.map(({ name, used }) => [name, used]))).toMatchObject({
      inboxes: inboxes.length,
      'inboxes-per-day': ofToday(inboxes.map(({ created_at }) => created_at)),
      'messages-per-day': ofToday(messages.map(({ received_at }) => received_at)),
      'stored-bytes': messages.reduce((sum, { size }) => sum + size, 0),
    })
    const set = (limit: number | null) => call(target, 'PUT', '/v1/quotas/inboxes', { body: { limit } })
    expect((await set(inboxes.length + 1)).status).toBe(200)
    const inbox = await createInbox(target)
    acknowledged.inboxes.set(inbox.id, inbox)
    expect((await call(target, 'POST', '/v1/inboxes')).status).toBe(429)
    expect((await set(null)).status).toBe(200)
  }
})
