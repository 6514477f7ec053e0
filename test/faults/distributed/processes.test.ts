import { startProcess } from '#test/harness/mayfly-process.js'
import { distributedEnvironment } from '#test/harness/mayfly.js'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { Deployment, ROLES } from './deployment.js'
import { IS_LONG, Trial } from './trial.js'

const ROUNDS = IS_LONG ? 3 : 1
const TRIAL_MS = 180_000
/** Of a consumer that is not heard of: its partitions then go to others. */
const SESSION_MS = 12_000

describeOn('kafka', 'redis')('processes that die or hang under load', () => {
  let deployment: Deployment

  beforeAll(async () => {
    deployment = await Deployment.start()
  }, TRIAL_MS)
  afterAll(() => deployment.dispose())

  test.each(ROLES)(
    '%s is killed: nothing promised is lost, nothing comes twice',
    async (role) => {
      const trial = await Trial.begin(deployment)
      for (let round = 0; round < ROUNDS; round += 1) {
        await deployment.replace(role, 'SIGKILL')
        await trial.goesOn()
      }
      await trial.end()
    },
    TRIAL_MS,
  )

  test.each(ROLES)(
    '%s is asked to end: it ends with 0, and nothing is lost',
    async (role) => {
      const trial = await Trial.begin(deployment)
      expect(await deployment.replace(role, 'SIGTERM')).toBe(0)
      await trial.goesOn()
      await trial.end()
    },
    TRIAL_MS,
  )

  it(
    'a projector that hung while another took its partitions over changes nothing when it goes on',
    async () => {
      const trial = await Trial.begin(deployment)
      const hung = deployment.process('projector')
      hung.signal('SIGSTOP')
      const stoppedAt = Date.now()
      const successor = await deployment.add('projector')
      await trial.goesOn()
      await until('the session to end', () => Date.now() - stoppedAt > SESSION_MS, SESSION_MS * 2)
      hung.signal('SIGCONT')
      await trial.goesOn()
      await trial.end()
      expect(await successor.end('SIGTERM')).toBe(0)
    },
    TRIAL_MS,
  )

  it(
    'projectors that come and go in the middle of batches lose nothing and repeat nothing',
    async () => {
      const trial = await Trial.begin(deployment)
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        const another = await deployment.add('projector')
        await trial.goesOn()
        await another.end(signal)
        await trial.goesOn()
      }
      await trial.end()
    },
    TRIAL_MS,
  )

  it('an api whose key nobody makes readable ends with 0 where it is asked to while it starts', async () => {
    const env = {
      ...distributedEnvironment(`alone-${process.pid}`),
      MAYFLY_BOOTSTRAP_API_KEY: 'a-key-that-no-projector-shows',
      MAYFLY_HTTP_PORT: '0',
    }
    const through = ['timeout', '--preserve-status', '6'] as const
    await expect(startProcess({ app: 'api', env, through })).rejects.toMatchObject({ exitCode: 0 })
  })
})
