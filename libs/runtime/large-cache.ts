import { LRUCache } from 'lru-cache'

/**
 * A cache whose maximum is seldom reached. With `max`, lru-cache allocates all entries at once: 8 ms of CPU time and 2 MB
 * for 100,000. With `maxSize` it grows as it is filled.
 */
export function largeCache<Key extends string, Value extends string | number | object | true>(
  maxEntries: number,
): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1 })
}
