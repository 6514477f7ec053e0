import Sequencer from '@jest/test-sequencer'
import { SLICES, suitesOf } from '../suites.mjs'

// Suites that take half a minute or more on any engine, the longest first.
const LONG = [
  ...suitesOf('', SLICES.flat()),
  'test/end-to-end/shutdown',
  'libs/engines/distributed/kafka/kafka-event-log',
  'apps/analytics/analytics',
  'libs/engines/clickhouse/chdb-usage',
  'test/faults/kill',
  'apps/projector/parser-pool',
].map((suite) => `/dist/${suite}.test.js`)

/**
 * Jest's order of suites, but with long suites first. Jest sorts by the previous duration, or by file size in a fresh
 * clone. A long suite that starts last would leave the other cores idle.
 */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    return super.sort([...tests]).toSorted((a, b) => rankOf(a.path) - rankOf(b.path))
  }
}

function rankOf(path) {
  const rank = LONG.findIndex((suite) => path.endsWith(suite))
  return rank === -1 ? LONG.length : rank
}
