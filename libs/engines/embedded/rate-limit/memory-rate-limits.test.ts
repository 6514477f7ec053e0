import { describeRateLimits } from '#libs/ports/rate-limit/rate-limits.contract.js'
import { memoryRateLimits } from './memory-rate-limits.js'

describeRateLimits('memory', () => {
  const limits = memoryRateLimits()
  return Promise.resolve({ one: limits, other: limits, close: () => Promise.resolve() })
})
