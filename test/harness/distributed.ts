// Runs before each suite of Jest's project `distributed`: see mayfly.ts.
process.env.TEST_ENGINE = 'distributed'
