import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/*
 * Which suites of test/ run on one engine only, and which of them not for each commit. A suite that is not listed always
 * runs; those of end-to-end/ and abuse/ run on both engines.
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
 * Slow suites. `npm test` runs all of them, `.ci/run` one slice for each commit. The slices take about the same time. In a
 * slice, the longest are first.
 */
export const SLICES = [
  [
    'test/faults/distributed/kafka',
    'test/clients/k6',
    'test/console/hostile-mail',
    'test/clients/cypress',
    'test/fuzz/mime',
  ],
  [
    'test/faults/distributed/processes',
    'test/faults/distributed/redis',
    'test/secured/secured',
    'test/fuzz/smtp',
    'test/clients/locust',
  ],
  [
    'test/faults/distributed/usage',
    'test/schemathesis/schemathesis',
    'test/clients/gatling',
    'test/clients/jmeter',
    'test/faults/distributed/replaced-log',
  ],
  [
    'test/faults/distributed/scale-out',
    'test/faults/distributed/redis-cluster',
    'test/abuse/one-account',
    'test/abuse/webhooks',
    'test/generated-clients/generated-clients',
  ],
].map(existing)

/** A suite that is renamed must be renamed here too. */
function existing(suites) {
  const missing = suites.filter(
    (suite) => !existsSync(fileURLToPath(new URL(`../${suite}.test.ts`, import.meta.url))),
  )
  if (missing.length > 0)
    throw new Error(`test/suites.mjs lists suites that do not exist: ${missing.join(', ')}`)
  return suites
}
