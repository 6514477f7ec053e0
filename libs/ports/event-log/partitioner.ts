/**
 * The partition that a key belongs to: Kafka's default partitioner, murmur2 of the key's UTF-8 bytes, so that
 * every client in every language agrees (org.apache.kafka.common.utils.Utils.murmur2).
 */
export function partitionOf(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions
}

const SEED = 0x9747b28c
const M = 0x5bd1e995
const R = 24

/** A signed 32 bit integer. */
export function murmur2(bytes: Buffer): number {
  let hash = SEED ^ bytes.length
  const tail = bytes.length & ~3
  for (let at = 0; at < tail; at += 4) {
    let word = Math.imul(bytes.readInt32LE(at), M)
    word ^= word >>> R
    hash = Math.imul(hash, M) ^ Math.imul(word, M)
  }
  const left = bytes.length - tail
  if (left > 0) hash = Math.imul(hash ^ bytes.readUIntLE(tail, left), M)
  hash = Math.imul(hash ^ (hash >>> 13), M)
  return hash ^ (hash >>> 15)
}
