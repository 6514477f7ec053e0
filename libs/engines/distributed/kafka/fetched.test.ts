import { readFetched } from './kafka-cluster.js'

const context = { firstOffset: '10', lastOffsetDelta: 9 }

function fetched(from: number, messages: { offset: number; headers?: object; isControlRecord?: boolean }[]) {
  const answer = readFetched(
    {
      responses: [
        {
          partitions: [
            {
              partition: 3,
              highWatermark: '20',
              messages: messages.map(({ offset, headers, ...rest }) => ({
                key: Buffer.from('k'),
                value: Buffer.from(`${offset}`),
                batchContext: context,
                ...rest,
                ...(headers === undefined ? {} : { headers: { ...headers } }),
                offset: `${offset}`,
              })),
            },
          ],
        },
      ],
    },
    [{ partition: 3, offset: from }],
  )
  return answer.partitions[0]
}

const offsetsOf = (answer: ReturnType<typeof fetched>) => answer?.records.map(({ offset }) => offset)

describe('a fetch response', () => {
  it('starts at the requested offset, although batches are returned whole', () => {
    expect(offsetsOf(fetched(12, [{ offset: 10 }, { offset: 12 }, { offset: 15 }]))).toEqual([12, 15])
  })

  it('ends after the last batch, even if compaction removed its last records', () => {
    expect(fetched(10, [{ offset: 10 }, { offset: 15 }])).toMatchObject({ from: 10, next: 20 })
    expect(fetched(16, [{ offset: 10 }, { offset: 15 }])).toMatchObject({ records: [], next: 20 })
  })

  it('ends at the requested offset if it has no records', () => {
    expect(fetched(12, [])).toMatchObject({ records: [], next: 12, highWatermark: 20 })
  })

  it('has no control records of transactions', () => {
    const answer = fetched(10, [{ offset: 10 }, { offset: 11, isControlRecord: true }])
    expect(offsetsOf(answer)).toEqual([10])
  })

  it('has headers as text, and the last value of a repeated one', () => {
    const headers = { one: Buffer.from('größer'), more: [Buffer.from('a'), Buffer.from('b')] }
    expect(fetched(10, [{ offset: 10, headers }])?.records[0]?.headers).toEqual({ one: 'größer', more: 'b' })
  })
})
