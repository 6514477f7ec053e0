import { existsSync, readdirSync } from 'node:fs'

/*
 * Which suites run on one engine only, and which do not run for each commit. On the embedded engine, a suite that is
 * not listed runs for each commit.
 */

/** What these suites test is the same on any engine, so they run on the embedded engine only. */
const ON_EMBEDDED = existing([
  'test/end-to-end/access',
  'test/end-to-end/authentication',
  'test/end-to-end/cli',
  'test/end-to-end/console-sign-in',
  'test/end-to-end/docs-page',
  'test/end-to-end/errors',
  'test/end-to-end/extract',
  'test/end-to-end/hostile-http',
  'test/end-to-end/hostile-mail',
  'test/end-to-end/http-edge',
  'test/end-to-end/load-smtp',
  'test/end-to-end/mailpit',
  'test/end-to-end/match-filters',
  'test/end-to-end/mcp',
  'test/end-to-end/openapi',
  'test/end-to-end/path-families',
  'test/end-to-end/postfix',
  'test/end-to-end/public-inbox',
  'test/end-to-end/render',
  'test/end-to-end/smtp-auth',
  'test/end-to-end/smtp-clients',
  'test/end-to-end/sources',
  'test/end-to-end/verify-run',
  'test/end-to-end/webhook-receivers',
  'test/end-to-end/webhook-urls',
])

/** Which suites each commit runs on the distributed engine too: at least one of each family. */
const ON_BOTH = existing([
  'test/end-to-end/attachments',
  'test/end-to-end/console-page',
  'test/end-to-end/cursors',
  'test/end-to-end/events',
  'test/end-to-end/quotas',
  'test/end-to-end/rate-limits',
  'test/end-to-end/round-trip',
  'test/end-to-end/usage',
  'test/end-to-end/webhooks',
])

/** Suites that take long, the longest first. */
const SLOW = existing([
  'test/faults/distributed/processes',
  'test/faults/distributed/usage',
  'test/faults/distributed/kafka',
  'test/faults/distributed/scale-out',
  'test/end-to-end/auditor-session',
  'test/schemathesis/schemathesis',
  'test/console/hostile-mail',
  'test/clients/python',
  'test/console/console',
  'test/abuse/one-account',
  'test/faults/rebuild',
  'test/end-to-end/cli',
  'test/faults/distributed/redis',
  'test/faults/restored-copies',
  'libs/engines/distributed/key-vault/logged-key-vault',
  'test/faults/audit',
  'test/end-to-end/bulk-inboxes',
  'test/secured/secured',
  'test/faults/distributed/redis-cluster',
  'test/faults/fair-parsing',
  'test/faults/webhook-replay',
  'apps/analytics/analytics',
  'test/clients/scenarios',
  'test/clients/k6',
  'test/clients/playwright',
  'test/faults/data-folder',
  'test/faults/usage-kill',
  'test/faults/erasure',
  'test/end-to-end/as-of',
  'libs/engines/clickhouse/chdb-usage',
  'test/faults/repeated-requests',
  'test/smtp/sending',
  'test/end-to-end/audit-export',
  'test/faults/distributed/erasure',
  'apps/projector/parser-pool',
  'test/end-to-end/webhook-deliveries',
  'test/fuzz/smtp',
  'test/faults/webhook-records',
  'test/clients/locust',
  'test/fuzz/mime',
  'test/clients/gatling',
  'libs/engines/distributed/redis/idempotency/redis-idempotency-store',
  'test/end-to-end/environment-wait',
  'test/faults/webhook-kill',
  'test/console/members',
  'test/console/long-lists',
  'test/clients/jmeter',
  'test/end-to-end/accounts',
  'test/end-to-end/cursor-laws',
  'test/end-to-end/members',
  'test/end-to-end/docs-page',
  'test/end-to-end/console-sign-in',
  'test/generated-clients/generated-clients',
  'test/console/provider-sign-in',
  'test/end-to-end/expiry',
  'libs/engines/distributed/redis/rate-limit/redis-rate-limits',
  'apps/smtp/sender-verifier',
  'test/end-to-end/usage-export',
  'test/clients/python-scenarios',
  'test/console/accessibility',
  'test/end-to-end/chosen-addresses',
  'test/end-to-end/inbox-tokens',
  'test/end-to-end/verify-run',
  'test/end-to-end/caught-mail',
  'test/abuse/webhooks',
  'infra/grafana/alert-rules',
  'test/faults/disk-full',
  'test/faults/power-loss',
  'test/faults/slow-endpoints',
  'test/abuse/many-requests',
  'test/console/mail-text',
  'test/clients/witness',
  'infra/dev/distributed',
  'test/clients/quickstart',
  'apps/smtp/slow-clients',
  'test/abuse/long-work',
  'test/end-to-end/http-edge',
  'test/faults/log-records',
  'test/faults/sigterm',
  'infra/servers/development-servers',
  'test/end-to-end/hostile-mail',
  'test/end-to-end/mcp',
  'infra/clickhouse/clickhouse',
  'test/end-to-end/mailpit',
  'test/end-to-end/load-smtp',
  'infra/kafka/kafka',
  'test/clients/cypress',
  'test/faults/distributed/replaced-log',
])

/** The suites that Jest's project `distributed` has: those of `end-to-end`, `abuse`, and some of the console. */
export const DISTRIBUTED = [
  ...['end-to-end', 'abuse'].flatMap((folder) =>
    readdirSync(new URL(folder, import.meta.url))
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `test/${folder}/${name.slice(0, -'.test.ts'.length)}`),
  ),
  // The other suites of the console are about its pages, which are the same on any engine.
  ...['console', 'provider-sign-in', 'public-inbox'].map((name) => `test/console/${name}`),
].filter((suite) => !ON_EMBEDDED.includes(suite))

/**
 * Slow suites, and repetitions on the distributed engine. `npm test` runs all slices, `.ci/run` one for each commit.
 * An entry `<suite> <project>` concerns a single Jest project.
 */
export const SLICES = dealt(8, [
  ...SLOW,
  ...DISTRIBUTED.filter((suite) => ![...ON_BOTH, ...SLOW].includes(suite)).map(
    (suite) => `${suite} distributed`,
  ),
])

/** Puts the entries into slices in turn, so that each has as many of the long ones. */
function dealt(slices, entries) {
  return Array.from({ length: slices }, (_, slice) =>
    entries.filter((_entry, index) => index % slices === slice),
  )
}

/** The suites among entries `<suite>` (of every Jest project) and `<suite> <project>` that concern a project. */
export function suitesOf(project, entries) {
  return entries
    .map((entry) => entry.split(' '))
    .filter(([, only = project]) => only === project)
    .map(([suite]) => suite)
}

/** A suite that is renamed must be renamed here too. */
function existing(suites) {
  const missing = suites.filter((suite) => !existsSync(new URL(`../${suite}.test.ts`, import.meta.url)))
  if (missing.length > 0)
    throw new Error(`test/suites.mjs lists suites that do not exist: ${missing.join(', ')}`)
  return suites
}
