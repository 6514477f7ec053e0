import { call, createInbox, messagesOf, send, mail, type InboxJson } from '#test/harness/client.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { untilReady } from '../answers.js'
import { Deployment, ROLES } from './deployment.js'
import { Trial, untilAllIsShown } from './trial.js'

const TRIAL_MS = 180_000

describeOn('kafka', 'redis')('two of each role', () => {
  let deployment: Deployment

  beforeAll(async () => {
    deployment = await Deployment.start({ instances: 2 })
  }, TRIAL_MS)
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

  it('show through one what came in through the other', async () => {
    const [one, other] = deployment.targets
    if (one === undefined || other === undefined) throw new Error('there are not two of each')
    const { id, address } = await createInbox(one)
    expect((await call(other, 'GET', `/v1/inboxes/${id}`)).status).toBe(200)
    await send(other, address, mail('through the other', 'text'))
    const [message] = await messagesOf(one, id, 1)
    expect(message).toMatchObject({ subject: 'through the other' })
    const deleted = await call(other, 'DELETE', `/v1/inboxes/${id}`)
    expect(deleted.status).toBe(200)
    expect((await call(one, 'GET', `/v1/inboxes/${id}`)).status).toBe(410)
  })

  it(
    'keep every promise under load',
    async () => {
      const trial = await Trial.begin(deployment)
      await trial.goesOn()
      await trial.end()
    },
    TRIAL_MS,
  )

  it('say that they are ready, and how far each is behind in its share', async () => {
    for (const target of ROLES.flatMap((role) => deployment.metricsOf(role))) {
      await untilReady(target)
      expect((await call(target, 'GET', '/healthz')).status).toBe(200)
    }
    const lag =
      /^mayfly_consumer_lag_records\{group="projector",topic="inbox-events",partition="(\d)"\} (\d+)$/gm
    const shares = await Promise.all(
      deployment.metricsOf('projector').map(async (target) => {
        const { body } = await call<string>(target, 'GET', '/metrics')
        return [...body.matchAll(lag)].map(([, partition, records]) => ({ partition, records }))
      }),
    )
    expect(shares.map(({ length }) => length)).toEqual([2, 2])
    expect(shares.flat().sort((one, other) => Number(one.partition) - Number(other.partition))).toEqual(
      ['0', '1', '2', '3'].map((partition) => ({ partition, records: '0' })),
    )
  })

  it(
    'expire an inbox once, which both then say',
    async () => {
      const { id } = await createInbox(deployment.target, { duration: '1m' })
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
      // Both may say so by the clock before its end is recorded. Nothing else has come to its end here.
      await until('the end to be recorded', async () => (await recordedEnds()) > 0)
      await untilAllIsShown(deployment.target)
      expect(await recordedEnds()).toBe(1)
    },
    TRIAL_MS,
  )
})
