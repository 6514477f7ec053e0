import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { Partition, PartitionRange } from '#libs/ports/event-log/event-log.js'
import { measureBacklog } from './consistent-views.js'

interface Stand {
  first: number
  end: number
  /** Where the views stand and what they aim for; null if they are not begun. */
  views: { position: number; target: number } | null
}

function measure(stands: readonly Stand[]) {
  const partitions = stands.map(({ first, end }, partition): PartitionRange => ({
    topic: 'inbox-events',
    partition,
    first,
    end,
  }))
  const log = layoutOf({ topology: () => Promise.resolve({ logId: 'the-log', partitions }) })
  const progress = ({ topic, partition }: Partition) => {
    const views = stands[partition]?.views ?? null
    return Promise.resolve(
      views === null ? null : { topic, partition, logId: 'the-log', begunAtMs: 1, ...views },
    )
  }
  return measureBacklog(log, { progress }, 'inbox-events')
}

describe('the backlog', () => {
  test.each<{ what: string; stands: Stand[]; records: number; isCatchingUp: boolean }>([
    {
      what: 'of views at the end',
      stands: [{ first: 0, end: 9, views: { position: 9, target: 4 } }],
      records: 0,
      isCatchingUp: false,
    },
    {
      what: 'of an empty log',
      stands: [{ first: 0, end: 0, views: { position: 0, target: 0 } }],
      records: 0,
      isCatchingUp: false,
    },
    {
      what: 'of views behind their target',
      stands: [{ first: 0, end: 9, views: { position: 3, target: 4 } }],
      records: 6,
      isCatchingUp: true,
    },
    {
      what: 'of views past their target',
      stands: [{ first: 0, end: 9, views: { position: 4, target: 4 } }],
      records: 5,
      isCatchingUp: false,
    },
    {
      what: 'of views not begun',
      stands: [{ first: 2, end: 9, views: null }],
      records: 7,
      isCatchingUp: true,
    },
    {
      what: 'of views ahead of the log',
      stands: [{ first: 0, end: 3, views: { position: 9, target: 3 } }],
      records: 0,
      isCatchingUp: false,
    },
    {
      what: 'of several partitions, one of them catching up',
      stands: [
        { first: 0, end: 5, views: { position: 3, target: 2 } },
        { first: 0, end: 9, views: { position: 1, target: 8 } },
        { first: 0, end: 0, views: { position: 0, target: 0 } },
      ],
      records: 10,
      isCatchingUp: true,
    },
  ])('$what is $records records; catching up: $isCatchingUp', async ({ stands, records, isCatchingUp }) => {
    expect(await measure(stands)).toEqual({ records, isCatchingUp })
  })
})
