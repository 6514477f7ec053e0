/** Splits items into chunks of at most `size`. */
export function* chunksOf<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

/** Splits items into chunks that weigh at most `max`. An item that weighs more is a chunk of its own. */
export function* chunksByWeight<Item>(
  items: readonly Item[],
  max: number,
  weightOf: (item: Item) => number,
): Generator<Item[]> {
  let chunk: Item[] = []
  let weight = 0
  for (const item of items) {
    const more = weightOf(item)
    if (chunk.length > 0 && weight + more > max) {
      yield chunk
      chunk = []
      weight = 0
    }
    chunk.push(item)
    weight += more
  }
  if (chunk.length > 0) yield chunk
}

/** Collects items into batches of `size`; the last one may be smaller. */
export async function* batchesOf<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  size: number,
): AsyncGenerator<Item[]> {
  let batch: Item[] = []
  for await (const item of items) {
    batch.push(item)
    if (batch.length < size) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
