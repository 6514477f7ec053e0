import { startSharedMayfly } from './shared-mayfly.js'

// Runs before each suite of Jest's project `redis-cluster`: see mayfly.ts and servers.ts. The project has few suites, so
// each starts its own Mayfly: one that ran as long as all projects would use more CPU time.
process.env.TEST_ENGINE = 'distributed'
process.env.TEST_REDIS = 'cluster'

let dispose: (() => Promise<void>) | undefined
beforeAll(async () => {
  dispose = await startSharedMayfly('redis-cluster')
})
afterAll(() => dispose?.())
