// Tests run on what ships: the build in dist/, as native ES modules, under the bundled Node.
export default {
  roots: ['<rootDir>/dist'],
  testMatch: ['**/*.test.js'],
  testEnvironment: '<rootDir>/dist/test/one-realm-environment.js',
  globalSetup: '<rootDir>/dist/test/harness/global-setup.js',
  globalTeardown: '<rootDir>/dist/test/harness/global-teardown.js',
  transform: {},
  testTimeout: 30_000,
}
