// Layers, from the inside out: domain, runtime, mail, ports, engines, role, apps (docs/decisions/layers.md).
const pure = '^libs/domain/'
// Draws random bits.
const impure = '^libs/domain/ids/mint\\.ts$'
const adapter = '^libs/engines/(embedded/[^/]+|distributed/(kafka|redis/[^/]+)|clickhouse)/'
// Tests, contract suites, and what only they use: arbitrary events, the words of given, when, then.
const testOnly = '\\.(test|contract|test-support)\\.ts$'

/** A folder of libs/ imports itself and the folders named, and no other of libs/. */
function layer(name, imported) {
  return {
    name: `layer-${name}`,
    severity: 'error',
    from: { path: `^libs/${name}/`, pathNot: testOnly },
    to: { path: '^libs/', pathNot: `^libs/(${[name, ...imported].join('|')})/` },
  }
}

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'pure-stays-pure',
      comment: 'A pure library knows no framework, no client, no clock, no randomness.',
      severity: 'error',
      from: { path: pure, pathNot: [testOnly, impure] },
      to: {
        pathNot: [`(?!${impure})${pure}`, '^(node:)?(buffer|zlib)$', '^node_modules/(typeid-js|typebox)/'],
      },
    },
    {
      name: 'libs-do-not-know-apps',
      severity: 'error',
      from: { path: '^libs/', pathNot: testOnly },
      to: { path: '^(apps|test)/' },
    },
    layer('domain', []),
    layer('runtime', ['domain']),
    layer('mail', ['domain', 'runtime']),
    layer('ports', ['domain', 'runtime', 'mail']),
    layer('engines', ['domain', 'runtime', 'mail', 'ports']),
    {
      name: 'embedded-adapters-stand-apart',
      comment: 'An adapter imports its own folder, ports and what is within; all share lmdb-file.',
      severity: 'error',
      from: { path: '^libs/engines/embedded/([^/]+)/' },
      to: { path: '^libs/engines/', pathNot: '^libs/engines/embedded/($1|lmdb-file)/' },
    },
    {
      name: 'redis-adapters-stand-apart',
      comment: 'As above; all share the client.',
      severity: 'error',
      from: { path: '^libs/engines/distributed/redis/([^/]+)/' },
      to: { path: '^libs/engines/', pathNot: '^libs/engines/distributed/redis/($1|client)/' },
    },
    {
      name: 'kafka-and-clickhouse-stand-apart',
      severity: 'error',
      from: { path: '^libs/engines/(distributed/kafka|clickhouse)/' },
      to: { path: '^libs/engines/', pathNot: '^libs/engines/$1/' },
    },
    {
      name: 'only-the-engine-chooses',
      comment: 'Adapters are made in libs/engines and nowhere else.',
      severity: 'error',
      from: { pathNot: ['^libs/engines/', '^test/', '\\.test\\.ts$'] },
      to: { path: adapter },
    },
    {
      name: 'apps-do-not-know-each-other',
      comment: 'Only standalone composes other roles.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: '^apps/standalone/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'no-test-code-in-production',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: testOnly },
      to: { path: `^test/|${testOnly}` },
    },
    {
      name: 'launchers-stand-apart',
      comment: 'What starts servers knows nothing of Mayfly; tests use it, what ships does not.',
      severity: 'error',
      from: { path: '^infra/(kafka|redis|clickhouse|servers)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(apps|libs|test)/' },
    },
    {
      name: 'no-launcher-in-production',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: testOnly },
      to: { path: '^infra/' },
    },
    {
      name: 'no-dev-dependency-in-production',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: testOnly },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      conditionNames: ['source', 'import', 'node', 'default'],
      exportsFields: ['exports'],
    },
  },
}
