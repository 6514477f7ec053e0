import { mintId } from '#libs/domain/ids/mint.js'
import { RecentAccounts } from './parse-budget.js'

const [one, other, third] = [mintId('acc'), mintId('acc'), mintId('acc')]

describe('an account', () => {
  it('is alone until another account has mail', () => {
    const accounts = new RecentAccounts()
    expect(accounts.isAlone(one, 0)).toBe(true)
    accounts.record(one, 0)
    accounts.record(one, 1)
    expect(accounts.isAlone(one, 1)).toBe(true)
    expect(accounts.isAlone(other, 1)).toBe(false)
    accounts.record(other, 2)
    expect([one, other, third].map((each) => accounts.isAlone(each, 2))).toEqual([false, false, false])
  })

  it('is alone again a minute later', () => {
    const accounts = new RecentAccounts()
    accounts.record(other, 0)
    for (let nowMs = 0; nowMs <= 60_001; nowMs += 1_000) accounts.record(one, nowMs)
    expect(accounts.isAlone(one, 60_000)).toBe(false)
    expect(accounts.isAlone(one, 60_001)).toBe(true)
    expect(accounts.isAlone(other, 60_001)).toBe(false)
  })
})
