import { describeRateLimits } from './rate-limits.contract.js'
import { memoryRateLimits } from './flexible-rate-limits.js'

describeRateLimits('memory', () => {
  const limits = memoryRateLimits()
  return Promise.resolve({ one: limits, other: limits, close: () => Promise.resolve() })
})
