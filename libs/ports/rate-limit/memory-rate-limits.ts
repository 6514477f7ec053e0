import { rateLimits, type Count, type RateLimits } from './rate-limits.js'

/**
 * Counts the requests of one process. The store has an entry and a timer for each count whose window is open, so its size is
 * bounded by the keys used within their windows.
 */
export function memoryRateLimits(): RateLimits {
  const counts = new Map<string, { used: number; endsAtMs: number }>()
  const find = (name: string) => {
    const count = counts.get(name)
    return count !== undefined && count.endsAtMs > performance.now() ? count : null
  }
  const usedOf = (name: string) => find(name)?.used ?? 0
  const add = ({ name, windowSeconds }: Count, amount: number) => {
    const open = find(name)
    if (open !== null) {
      open.used += amount
      return
    }
    const windowMs = windowSeconds * 1_000
    const count = { used: amount, endsAtMs: performance.now() + windowMs }
    counts.set(name, count)
    setTimeout(() => counts.get(name) === count && counts.delete(name), windowMs).unref()
  }
  return rateLimits(({ group, own, amount }) => {
    const chosen = own.find(({ name, limit }) => usedOf(name) < limit)
    const isAllowed = chosen !== undefined && (group === null || usedOf(group.name) < group.limit)
    if (isAllowed && amount > 0) {
      if (group !== null) add(group, amount)
      add(chosen, amount)
    }
    const all = group === null ? own : [group, ...own]
    const states = all.map(({ name }) => ({
      used: usedOf(name),
      msLeft: (find(name)?.endsAtMs ?? 0) - performance.now(),
    }))
    return Promise.resolve({ isAllowed, counts: states })
  })
}
