/** Splits items into chunks of at most `size`. */
export function* chunksOf<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}
