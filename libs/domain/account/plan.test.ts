import { planNamed } from './account.test-support.js'
import { BUILT_IN_PLANS, parseRetention, planWith, unknownPlan } from './access.js'

describe('a plan', () => {
  test.each([...BUILT_IN_PLANS.values()])(
    '$name says how long its inboxes live, in text and in milliseconds',
    ({ name, retention, hasApiAccess, requestsPerMinute }) => {
      expect(parseRetention(retention.text)).toEqual(retention)
      expect(hasApiAccess).toBe(name !== 'free')
      expect(requestsPerMinute > 0).toBe(hasApiAccess)
    },
  )

  it('has the limits of an account where it leaves them to each', () => {
    const limits = { requestsPerMinute: 7, maxMessages: 3 }
    const enterprise = planNamed('enterprise')
    expect(planWith(enterprise, limits)).toEqual({ ...enterprise, ...limits })
    expect(planWith(enterprise, null)).toEqual(enterprise)
    expect(planWith(planNamed('pro'), limits)).toEqual(planNamed('pro'))
  })

  it('that is not known has no API access', () => {
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
  ])('may keep mail for $text: $is', ({ text, is }) => {
    expect(parseRetention(text) !== null).toBe(is)
  })
})
