// Runs before each suite of the project `distributed`: see mayfly.ts.
process.env.TEST_ENGINE = 'distributed'
