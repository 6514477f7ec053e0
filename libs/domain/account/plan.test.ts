import { planNamed } from './account.test-support.js'
import { BUILT_IN_PLANS, parseRetention, planWithLimits, unknownPlan } from './access.js'

describe('a plan', () => {
  test.each([...BUILT_IN_PLANS.values()])(
    '$name has the same retention as text and in milliseconds',
    ({ name, retention, hasApiAccess, requestsPerMinute }) => {
      expect(parseRetention(retention.text)).toEqual(retention)
      expect(hasApiAccess).toBe(name !== 'free')
      expect(requestsPerMinute > 0).toBe(hasApiAccess)
    },
  )

  it('is combined with the limits of an account if it allows them', () => {
    const limits = { requestsPerMinute: 7, maxMessages: 3 }
    const enterprise = planNamed('enterprise')
    expect(planWithLimits(enterprise, limits)).toEqual({
      ...enterprise,
      ...limits,
      accountRequestsPerMinute: 2_400,
    })
    expect(planWithLimits(enterprise, null)).toEqual(enterprise)
    expect(planWithLimits(planNamed('pro'), limits)).toEqual(planNamed('pro'))
  })

  test.each([
    { limits: {}, is: 20_000_000 },
    { limits: { accountRequestsPerMinute: 3_000_000 }, is: 3_000_000 },
    { limits: { accountRequestsPerMinute: 2_400 }, is: 3_000_000 },
    { limits: { requestsPerMinute: 500 }, is: 10_000 },
    { limits: { requestsPerMinute: 500, accountRequestsPerMinute: 2_400 }, is: 2_400 },
    { limits: { requestsPerMinute: 1 }, is: 2_400 },
  ])('with the limits $limits allows an account $is requests per minute', ({ limits, is }) => {
    expect(planWithLimits(planNamed('enterprise'), limits).accountRequestsPerMinute).toBe(is)
  })

  it('that is not configured has no API access', () => {
    expect(unknownPlan('gone')).toMatchObject({ name: 'gone', hasApiAccess: false, requestsPerMinute: 0 })
  })

  test.each([
    { text: '1m', is: true },
    { text: '30d', is: true },
    { text: '720h', is: true },
    { text: '31d', is: false },
    { text: '721h', is: false },
    { text: '0m', is: false },
    { text: 'long', is: false },
  ])('may have a retention of $text: $is', ({ text, is }) => {
    expect(parseRetention(text) !== null).toBe(is)
  })
})
