import Sequencer from '@jest/test-sequencer'

// Of half a minute and more, the longest first, on whichever engine they run.
const LONG = [
  'test/faults/distributed/kafka',
  'test/faults/distributed/processes',
  'test/faults/distributed/usage',
  'test/faults/distributed/scale-out',
  'test/faults/data-folder',
  'test/faults/webhook-replay',
  'test/end-to-end/ended-inboxes',
  'test/end-to-end/shutdown',
  'test/secured/secured',
  'test/schemathesis/schemathesis',
  'libs/engines/distributed/kafka/kafka-event-log',
  'apps/analytics/analytics',
  'libs/engines/clickhouse/chdb-usage',
  'infra/clickhouse/clickhouse',
  'test/fuzz/mime',
  'test/fuzz/smtp',
  'test/faults/kill',
].map((suite) => `/dist/${suite}.test.js`)

/**
 * Jest's order of suites, with those first that take long. Jest itself knows how long each took the last time, but
 * in a fresh clone goes by the size of files; a long suite that is left for the end runs there beside an idle core.
 */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    return super.sort([...tests]).toSorted((a, b) => placeOf(a.path) - placeOf(b.path))
  }
}

function placeOf(path) {
  const place = LONG.findIndex((suite) => path.endsWith(suite))
  return place === -1 ? LONG.length : place
}
