// Tests run on what ships: the build in dist/, as native ES modules, under the bundled Node.
const shared = {
  testEnvironment: '<rootDir>/dist/test/one-realm-environment.js',
  globalSetup: '<rootDir>/dist/test/harness/global-setup.js',
  globalTeardown: '<rootDir>/dist/test/harness/global-teardown.js',
  transform: {},
}

/** The suites whose answers come from many keys. */
const onCluster = process.env.MAYFLY_CLUSTER_SUITES === 'all' ? ['*'] : ['list-inboxes', 'messages', 'paging']

export default {
  testTimeout: 120_000,
  // Many suites wait for processes more than they compute.
  maxWorkers: 3,
  testSequencer: '<rootDir>/test/harness/longest-first.mjs',
  projects: [
    { ...shared, displayName: 'embedded', roots: ['<rootDir>/dist'], testMatch: ['**/*.test.js'] },
    // The same suites once more, each role a process of its own on Kafka and Redis.
    {
      ...shared,
      displayName: 'distributed',
      globalSetup: '<rootDir>/dist/test/harness/global-setup-distributed.js',
      roots: ['<rootDir>/dist/test/end-to-end', '<rootDir>/dist/test/abuse'],
      testMatch: ['**/*.test.js'],
      setupFiles: ['<rootDir>/dist/test/harness/distributed.js'],
    },
    // And on a Redis Cluster: a few, or all of them with `npm run test:cluster`.
    {
      ...shared,
      displayName: 'redis-cluster',
      globalSetup: '<rootDir>/dist/test/harness/global-setup-redis-cluster.js',
      roots: ['<rootDir>/dist/test/end-to-end'],
      testMatch: onCluster.map((suite) => `**/${suite}.test.js`),
      setupFiles: ['<rootDir>/dist/test/harness/redis-cluster.js'],
    },
  ],
}
