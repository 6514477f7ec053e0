import { memoryRateLimits } from './memory-rate-limits.js'
import { describeRateLimits } from './rate-limits.contract.js'

describeRateLimits('memory', () => {
  const limits = memoryRateLimits()
  return Promise.resolve({ one: limits, other: limits, close: () => Promise.resolve() })
})
