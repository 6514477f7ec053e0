import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { Partition, PartitionRange } from '#libs/ports/event-log/event-log.js'
import { measureBacklog } from './consistent-views.js'

interface PartitionState {
  first: number
  end: number
  /** The position and target of the views; null if they were never begun. */
  views: { position: number; target: number } | null
}

function measure(states: readonly PartitionState[]) {
  const partitions = states.map(({ first, end }, partition): PartitionRange => ({
    topic: 'inbox-events',
    partition,
    first,
    end,
  }))
  const log = layoutOf({ topology: () => Promise.resolve({ logId: 'the-log', partitions }) })
  const progress = ({ topic, partition }: Partition) => {
    const views = states[partition]?.views ?? null
    return Promise.resolve(
      views === null ? null : { topic, partition, logId: 'the-log', begunAtMs: 1, ...views },
    )
  }
  return measureBacklog(log, { progress }, ['inbox-events'])
}

describe('the backlog', () => {
  test.each<{ what: string; states: PartitionState[]; records: number; isCatchingUp: boolean }>([
    {
      what: 'of views at the end',
      states: [{ first: 0, end: 9, views: { position: 9, target: 4 } }],
      records: 0,
      isCatchingUp: false,
    },
    {
      what: 'of an empty log',
      states: [{ first: 0, end: 0, views: { position: 0, target: 0 } }],
      records: 0,
      isCatchingUp: false,
    },
    {
      what: 'of views behind their target',
      states: [{ first: 0, end: 9, views: { position: 3, target: 4 } }],
      records: 6,
      isCatchingUp: true,
    },
    {
      what: 'of views past their target',
      states: [{ first: 0, end: 9, views: { position: 4, target: 4 } }],
      records: 5,
      isCatchingUp: false,
    },
    {
      what: 'of views that were never begun',
      states: [{ first: 2, end: 9, views: null }],
      records: 7,
      isCatchingUp: true,
    },
    {
      what: 'of views ahead of the log',
      states: [{ first: 0, end: 3, views: { position: 9, target: 3 } }],
      records: 0,
      isCatchingUp: false,
    },
    {
      what: 'of several partitions, one of them catching up',
      states: [
        { first: 0, end: 5, views: { position: 3, target: 2 } },
        { first: 0, end: 9, views: { position: 1, target: 8 } },
        { first: 0, end: 0, views: { position: 0, target: 0 } },
      ],
      records: 10,
      isCatchingUp: true,
    },
  ])('$what is $records records; catching up: $isCatchingUp', async ({ states, records, isCatchingUp }) => {
    expect(await measure(states)).toEqual({ records, isCatchingUp })
  })
})
