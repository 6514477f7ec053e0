import { withKey, issueKey, openAccount, type KeyJson, type NewKeyJson } from '#test/harness/accounts.js'
import { call, create, createInbox, messagesOf, send, mail, type InboxJson } from '#test/harness/client.js'
import { join as joinAccount } from '#test/harness/members.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { AcknowledgedWrites } from '../acknowledged-writes.js'
import { untilReady } from '../api-snapshot.js'
import { startLoad } from '../load.js'
import { Deployment, IS_LONG, ROLES } from './deployment.js'
import { LoadTest, RECOVERS_WITHIN_MS, untilBacklogIsEmpty } from './load-test.js'

const TEST_TIMEOUT_MS = 180_000
const SENDERS = 4

describeOn(
  'kafka',
  'redis',
  'clickhouse',
)('two of each role', () => {
  let deployment: Deployment
  /** Expires after a minute, during the other tests. */
  let short: InboxJson

  beforeAll(async () => {
    deployment = await Deployment.start({ instances: 2 })
    short = await createInbox(deployment.target, { duration: '1m' })
  }, TEST_TIMEOUT_MS)
  afterAll(() => deployment.dispose())

  async function recordedEnds(): Promise<number> {
    const counts = await Promise.all(
      deployment.metricsOf('lifecycle').map(async (lifecycle) => {
        const { body } = await call<string>(lifecycle, 'GET', '/metrics')
        return Number(/^mayfly_expired_inboxes_total (\d+)$/m.exec(body)?.[1])
      }),
    )
    return counts.reduce((sum, count) => sum + count, 0)
  }

  it('show through one process what another one has accepted', async () => {
    const [one, other] = deployment.targets
    if (one === undefined || other === undefined)
      throw new Error('the deployment has fewer than two instances')
    const { id, address } = await createInbox(one)
    expect((await call(other, 'GET', `/v1/inboxes/${id}`)).status).toBe(200)
    await send(other, address, mail('through the other', 'text'))
    const [message] = await messagesOf(one, id, 1)
    expect(message).toMatchObject({ subject: 'through the other' })
    const deleted = await call(other, 'DELETE', `/v1/inboxes/${id}`)
    expect(deleted.status).toBe(200)
    expect((await call(one, 'GET', `/v1/inboxes/${id}`)).status).toBe(410)
  })

  it('see changes of keys, members and plans by another process soon', async () => {
    const [one, other] = deployment.targets
    if (one === undefined || other === undefined)
      throw new Error('the deployment has fewer than two instances')
    const account = await openAccount(one)
    const admin = withKey(one, account.key)
    const [revoked, rotated] = [await issueKey(admin), await issueKey(admin)]
    const statusOf = async (key: { secret: string } | null) =>
      (await call(withKey(other, key), 'GET', '/v1/account')).status
    const soon = (what: string, key: { secret: string } | null, status: number) =>
      until(what, async () => (await statusOf(key)) === status, IS_LONG ? 1_000 : 10_000)

    // The other process has them cached, as for a busy client.
    for (const key of [account.key, revoked, rotated]) expect(await statusOf(key)).toBe(200)
    expect((await call(admin, 'DELETE', `/v1/keys/${revoked.id}`)).status).toBe(200)
    await soon('the revocation', revoked, 401)
    const answer = await call<NewKeyJson>(admin, 'POST', `/v1/keys/${rotated.id}/rotate`)
    await soon('the rotation', rotated, 401)
    expect(await statusOf(answer.body)).toBe(200)

    const { target: session, member } = await joinAccount(admin, { role: 'developer' })
    const personal = await issueKey(session, { owner: 'personal', scopes: ['inboxes'] })
    const service = await issueKey(admin)
    for (const each of [{ secret: session.apiKey }, personal, service]) expect(await statusOf(each)).toBe(200)
    expect((await call(admin, 'DELETE', `/v1/members/${member.id}`)).status).toBe(200)
    await Promise.all([
      soon('the session to end', { secret: session.apiKey }, 401),
      soon('the personal key to end', personal, 401),
    ])
    expect(await statusOf(service)).toBe(200)

    await call(one, 'PATCH', `/v1/accounts/${account.id}`, { body: { plan: 'free' } })
    await soon('the plan', account.key, 403)
  })

  it('know when a key was used at another process', async () => {
    const [one, other] = deployment.targets
    if (one === undefined || other === undefined)
      throw new Error('the deployment has fewer than two instances')
    const admin = withKey(one, (await openAccount(one)).key)
    const key = await issueKey(admin)
    await call(withKey(other, key), 'GET', '/v1/account')
    await until('its last use', async () => {
      const { body } = await call<KeyJson>(admin, 'GET', `/v1/keys/${key.id}`)
      return body.last_used_at !== null
    })
  })

  it(
    'lose nothing acknowledged under load',
    async () => {
      const loadTest = await LoadTest.start(deployment)
      await loadTest.untilProgress()
      await loadTest.stopAndVerify()
    },
    TEST_TIMEOUT_MS,
  )

  it('make one inbox for mail to an unknown address, whichever of them receives it', async () => {
    const { target, targets } = deployment
    const domain = await create<{ name: string }>(target, '/v1/domains', { hosted: true })
    const addresses = Array.from({ length: 5 }, (_, number) => `unknown-${number}@${domain.name}`)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, number) =>
        send(targets[number % targets.length] ?? target, addresses, mail(`mail ${number}`)),
      ),
    )
    expect(answers).toHaveLength(20)
    for (const address of addresses) {
      const query = `/v1/inboxes?address=${encodeURIComponent(address)}`
      const { body: inboxes } = await call<InboxJson[]>(target, 'GET', query)
      expect(inboxes).toHaveLength(1)
      expect(await messagesOf(target, inboxes[0]?.id ?? '', 20)).toHaveLength(20)
    }
  })

  it(
    'exceed a quota by no more than what is in flight, also if a projector is killed',
    async () => {
      const { target, targets } = deployment
      const quota = '/v1/quotas/messages-per-day'
      const used = async () => {
        const { body } = await call<{ name: string; used: number }[]>(target, 'GET', '/v1/quotas')
        return body.find(({ name }) => name === 'messages-per-day')?.used ?? 0
      }
      const acknowledged = new AcknowledgedWrites()
      const inbox = await createInbox(target)
      acknowledged.inboxes.set(inbox.id, inbox)
      const limit = (await used()) + 200
      await call(target, 'PUT', quota, { body: { limit } })
      const loads = targets.map((each) =>
        startLoad(each, acknowledged, { senders: SENDERS, creators: 0, isPersistent: true }),
      )
      deployment.users.push(...loads)
      await until('half of the quota', () => acknowledged.accepted.size >= 100)
      await deployment.restart('projector', 'SIGKILL')
      await until(
        'refusals',
        () => loads.every((load) => load.quotaRefusals() >= SENDERS),
        RECOVERS_WITHIN_MS,
      )
      await Promise.all(loads.map((load) => load.stop()))
      await acknowledged.verify(target)
      expect(await used()).toBeGreaterThanOrEqual(limit)
      expect(await used()).toBeLessThan(limit + targets.length * SENDERS)
      await call(target, 'PUT', quota, { body: { limit: null } })
    },
    TEST_TIMEOUT_MS,
  )

  it('report that they are ready, and the backlog of each', async () => {
    for (const target of ROLES.flatMap((role) => deployment.metricsOf(role))) {
      await untilReady(target)
      expect((await call(target, 'GET', '/healthz')).status).toBe(200)
    }
    const lag =
      /^mayfly_consumer_lag_records\{group="projector",topic="inbox-events",partition="(\d)"\} (\d+)$/gm
    const shares = await until('equal shares without a backlog', async () => {
      const found = await Promise.all(
        deployment.metricsOf('projector').map(async (target) => {
          const { body } = await call<string>(target, 'GET', '/metrics')
          return [...body.matchAll(lag)].map(([, partition, records]) => ({ partition, records }))
        }),
      )
      const isDone = found.every(
        (share) => share.length === 2 && share.every(({ records }) => records === '0'),
      )
      return isDone ? found : null
    })
    const partitions = shares.flat().map(({ partition }) => partition)
    expect(partitions.toSorted()).toEqual(['0', '1', '2', '3'])
  })

  it(
    'expire an inbox once, which both then report',
    async () => {
      const { id } = short
      for (const target of deployment.targets) {
        await until(
          'the expiry',
          async () => {
            const { status, body } = await call<InboxJson[]>(target, 'GET', '/v1/inboxes?state=expired')
            return status === 200 && body.some((inbox) => inbox.id === id)
          },
          80_000,
        )
        expect((await call(target, 'GET', `/v1/inboxes/${id}`)).status).toBe(410)
      }
      // Both may report it by the clock before the event is recorded. No other inbox has ended.
      await until('the end to be recorded', async () => (await recordedEnds()) > 0)
      await untilBacklogIsEmpty(deployment.target)
      expect(await recordedEnds()).toBe(1)
    },
    TEST_TIMEOUT_MS,
  )
})
