import { murmur2, partitionOf } from './topics.js'

describe('partitioner', () => {
  // Test vectors from Kafka's UtilsTest.testMurmur2.
  test.each([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ])('hashes %s as Kafka does', (key, hash) => {
    expect(murmur2(Buffer.from(key))).toBe(hash)
  })

  it('assigns every key a partition within the range', () => {
    const seen = new Set(Array.from({ length: 1000 }, (_, n) => partitionOf(`inb_${n}`, 24)))
    expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: 24 }, (_, n) => n))
  })
})
