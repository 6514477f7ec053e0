// Runs before each suite of Jest's project `redis-cluster`: see mayfly.ts and servers.ts.
process.env.TEST_ENGINE = 'distributed'
process.env.TEST_REDIS = 'cluster'
