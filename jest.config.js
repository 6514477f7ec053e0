import { DISTRIBUTED, SLICES, suitesOf } from './test/suites.mjs'

/** The number of the slice that runs; 0 runs all. */
const slice = Number(process.env.MAYFLY_TEST_SLICE ?? 0)
if (slice !== 0 && SLICES[slice - 1] === undefined) throw new Error(`MAYFLY_TEST_SLICE: no slice ${slice}`)
const otherSlices = slice === 0 ? [] : SLICES.toSpliced(slice - 1, 1).flat()

/** What a project leaves out. */
function without(project, entries) {
  return suitesOf(project, entries).map((suite) => `/dist/${suite}\\.test\\.js$`)
}

// Tests run on the build in dist/, as native ES modules, with the Node of node_modules/.
const shared = {
  testEnvironment: '<rootDir>/dist/test/one-realm-environment.js',
  globalSetup: '<rootDir>/dist/test/harness/global-setup.js',
  globalTeardown: '<rootDir>/dist/test/harness/global-teardown.js',
  transform: {},
}

/** The suites whose answers combine many Redis keys. */
const onCluster = process.env.MAYFLY_CLUSTER_SUITES === 'all' ? ['*'] : ['list-inboxes', 'messages', 'paging']

export default {
  testTimeout: 120_000,
  // More workers than cores, because many suites wait for processes most of the time.
  maxWorkers: 3,
  testSequencer: '<rootDir>/test/harness/longest-first.mjs',
  projects: [
    {
      ...shared,
      displayName: 'embedded',
      roots: ['<rootDir>/dist'],
      testMatch: ['**/*.test.js'],
      testPathIgnorePatterns: without('embedded', otherSlices),
    },
    // With one process per role on Kafka, Redis and ClickHouse.
    {
      ...shared,
      displayName: 'distributed',
      globalSetup: '<rootDir>/dist/test/harness/global-setup-distributed.js',
      roots: ['<rootDir>/dist/test'],
      testMatch: DISTRIBUTED.map((suite) => `<rootDir>/dist/${suite}.test.js`),
      testPathIgnorePatterns: without('distributed', otherSlices),
      setupFiles: ['<rootDir>/dist/test/harness/distributed.js'],
    },
    // On a Redis Cluster: a few suites, or all with `npm run test:cluster`.
    {
      ...shared,
      displayName: 'redis-cluster',
      globalSetup: '<rootDir>/dist/test/harness/global-setup-redis-cluster.js',
      roots: ['<rootDir>/dist/test/end-to-end'],
      testMatch: onCluster.map((suite) => `**/${suite}.test.js`),
      setupFilesAfterEnv: ['<rootDir>/dist/test/harness/redis-cluster.js'],
    },
  ],
}
