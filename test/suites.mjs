import { existsSync } from 'node:fs'

/*
 * Which suites run on one engine only, and which do not run for each commit. A suite that is not listed always
 * runs. Those of end-to-end/ and abuse/ run on both engines.
 */

/**
 * What these suites test is the same on any engine, so they run on the embedded engine only. Of each family another
 * suite also runs on the distributed one: `operations` (HTTP), `round-trip` (SMTP), `attachments` (content of mail),
 * `docs`, `console-page`, `load-http` (command line).
 */
export const ON_EMBEDDED = existing([
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

/**
 * Slow suites, and repetitions on the distributed engine that not every commit needs. `npm test` runs all slices,
 * `.ci/run` one for each commit. They take about the same time. In each, the longest suites are first.
 */
export const SLICES = [
  [
    'test/faults/distributed/processes',
    'test/secured/secured',
    'test/console/hostile-mail',
    'test/clients/playwright',
    'test/clients/k6',
    'test/clients/python',
    'test/faults/restored-copies',
    'test/faults/power-loss',
    'test/faults/log-records',
    'test/faults/webhook-kill',
    'test/faults/distributed/replaced-log',
    'test/smtp/sending',
    'apps/smtp/slow-clients',
    'test/end-to-end/audit distributed',
    'test/end-to-end/cursor-laws distributed',
    'test/end-to-end/first-key distributed',
    'test/end-to-end/passwords distributed',
    'test/end-to-end/caught-mail distributed',
    'test/end-to-end/history distributed',
    'test/end-to-end/paging distributed',
    'infra/grafana/alert-rules',
  ],
  [
    'test/faults/distributed/usage',
    'test/abuse/one-account',
    'test/faults/webhook-replay',
    'test/faults/usage-kill',
    'test/faults/webhook-records',
    'test/clients/gatling',
    'test/clients/jmeter',
    'test/end-to-end/bulk-inboxes distributed',
    'test/clients/python-scenarios',
    'test/end-to-end/verify-run',
    'test/console/console distributed',
    'test/end-to-end/uncounted-usage distributed',
    'test/end-to-end/keys distributed',
    'test/end-to-end/chosen-addresses distributed',
    'test/end-to-end/refused-mail distributed',
    'test/end-to-end/messages distributed',
    'infra/clickhouse/clickhouse',
    'infra/kafka/kafka',
  ],
  [
    'test/faults/distributed/kafka',
    'test/schemathesis/schemathesis',
    'test/faults/fair-parsing',
    'test/faults/repeated-requests',
    'test/clients/locust',
    'test/end-to-end/docs-page',
    'test/console/accessibility',
    'infra/dev/distributed',
    'infra/servers/development-servers',
    'test/console/public-inbox distributed',
    'test/end-to-end/change-inbox distributed',
    'test/end-to-end/tenants distributed',
    'test/end-to-end/usage-report distributed',
    'test/end-to-end/count-wait distributed',
    'test/end-to-end/environment-messages distributed',
    'test/end-to-end/list-inboxes distributed',
    'test/end-to-end/create-inbox distributed',
  ],
  [
    'test/faults/distributed/scale-out',
    'test/faults/rebuild',
    'test/faults/distributed/redis',
    'test/faults/distributed/redis-cluster',
    'test/faults/data-folder',
    'test/fuzz/smtp',
    'test/fuzz/mime',
    'test/console/long-lists',
    'test/generated-clients/generated-clients',
    'test/abuse/webhooks',
    'test/abuse/many-requests',
    'test/abuse/long-work',
    'test/clients/quickstart',
    'test/end-to-end/mcp',
    'test/end-to-end/load-smtp',
    'test/clients/cypress',
    'test/end-to-end/accounts distributed',
    'test/end-to-end/faults distributed',
    'test/end-to-end/inbox-tokens distributed',
    'test/end-to-end/inject distributed',
    'test/end-to-end/usage-export distributed',
    'test/end-to-end/message-checks distributed',
    'test/end-to-end/ended-inboxes distributed',
  ],
].map(existing)

/** The suites among entries `<suite>` (of every Jest project) and `<suite> <project>` that concern a project. */
export function suitesOf(project, entries) {
  return entries
    .map((entry) => entry.split(' '))
    .filter(([, only = project]) => only === project)
    .map(([suite]) => suite)
}

/** A suite that is renamed must be renamed here too. */
function existing(suites) {
  const missing = suites.filter(
    (suite) => !existsSync(new URL(`../${suite.split(' ')[0]}.test.ts`, import.meta.url)),
  )
  if (missing.length > 0)
    throw new Error(`test/suites.mjs lists suites that do not exist: ${missing.join(', ')}`)
  return suites
}
