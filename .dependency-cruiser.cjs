// Imports point inward: apps → engine → adapters → ports → pure libraries.
const pure = '^libs/(events|inbox|account|webhook|typeid)/'
// Need node:crypto: one draws random bits, the other hashes.
const impure = '^libs/(typeid/mint|account/secret-hash)\\.ts$'
const engines = '(lmdb|in-process|memory|kafka|redis|clickhouse)'
const adapter = `^libs/[^/]+/${engines}/`
// Tests, contract suites, and what only they are made of: arbitrary events, the words of given, when, then.
const testOnly = '\\.(test|contract|arbitrary)\\.ts$|/given-when-then\\.ts$'

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
    {
      name: 'adapters-do-not-know-each-other',
      comment: 'An adapter (libs/<port>/<engine>/) imports its own folder, its port and pure libraries.',
      severity: 'error',
      from: { path: `^libs/([^/]+)/${engines}/` },
      to: { path: adapter, pathNot: '^libs/$1/$2/' },
    },
    {
      name: 'only-the-engine-chooses',
      comment: 'Adapters are made in libs/engine and nowhere else.',
      severity: 'error',
      from: { pathNot: ['^libs/engine/', adapter, '^test/', '\\.test\\.ts$'] },
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
