// The layers are domain, runtime, mail, ports, engines, role and apps (docs/decisions/layers.md).
const pure = '^libs/domain/'
// These use node:crypto: random ids, and the hashes and signatures of audit logs.
const impure = '^libs/domain/(ids/mint\\.ts$|audit/)'
const adapter = '^libs/engines/(embedded/[^/]+|distributed/(kafka|redis/[^/]+)|clickhouse)/'
// Tests, contract suites, and code that only they use.
const testOnly = '\\.(test|contract|test-support)\\.ts$'

/** A folder of libs/ may import itself and the given folders of libs/. */
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
    // k6 has its modules built in.
    {
      name: 'no-unresolved',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^k6(/|$)' },
    },
    {
      name: 'pure-stays-pure',
      comment: 'The domain uses no framework, client, clock or randomness.',
      severity: 'error',
      from: { path: pure, pathNot: [testOnly, impure] },
      to: {
        pathNot: [`(?!${impure})${pure}`, '^(node:)?(buffer|zlib)$', '^node_modules/(typeid-js|typebox)/'],
      },
    },
    {
      name: 'libs-do-not-import-apps',
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
      name: 'embedded-adapters-are-independent',
      comment: 'An adapter imports no other adapter; all may import lmdb-file.',
      severity: 'error',
      from: { path: '^libs/engines/embedded/([^/]+)/' },
      to: { path: '^libs/engines/', pathNot: '^libs/engines/embedded/($1|lmdb-file)/' },
    },
    {
      name: 'redis-adapters-are-independent',
      comment: 'An adapter imports no other adapter; all may import the client.',
      severity: 'error',
      from: { path: '^libs/engines/distributed/redis/([^/]+)/' },
      to: { path: '^libs/engines/', pathNot: '^libs/engines/distributed/redis/($1|client)/' },
    },
    {
      name: 'kafka-and-clickhouse-are-independent',
      severity: 'error',
      from: { path: '^libs/engines/(distributed/kafka|clickhouse)/' },
      to: { path: '^libs/engines/', pathNot: '^libs/engines/$1/' },
    },
    {
      name: 'only-engines-creates-adapters',
      comment: 'Adapters are only created in libs/engines.',
      severity: 'error',
      from: { pathNot: ['^libs/engines/', '^test/', '\\.test\\.ts$'] },
      to: { path: adapter },
    },
    {
      name: 'apps-do-not-import-each-other',
      comment: 'Only standalone imports other roles.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: '^apps/standalone/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'console-knows-only-the-http-contract',
      comment:
        'The console runs in browsers. It uses the API through the client library, and names attachments as the API does.',
      severity: 'error',
      from: { path: '^apps/console/' },
      to: { path: '^(libs|infra|test)/', pathNot: '^libs/mail/(?:attachment-name|image-type)\\.ts$' },
    },
    {
      name: 'clients-do-not-import-the-server',
      severity: 'error',
      from: { path: '^clients/' },
      to: { path: '^(apps|libs|infra|test)/' },
    },
    {
      name: 'no-test-code-in-production',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: testOnly },
      to: { path: `^test/|${testOnly}` },
    },
    {
      name: 'launchers-are-independent',
      comment: 'The launchers of servers are independent of Mayfly, and are only used by tests and scripts.',
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
    exclude: { path: '^clients/[^/]+/dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      conditionNames: ['source', 'import', 'node', 'default'],
      exportsFields: ['exports'],
    },
  },
}
