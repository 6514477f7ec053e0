import { RecentOwners } from './recent-owners.js'

const [one, other, third] = ['one', 'other', 'third'] as const

describe('an owner', () => {
  it('is alone until another owner is active', () => {
    const owners = new RecentOwners()
    expect(owners.isAlone(one, 0)).toBe(true)
    owners.record(one, 0)
    owners.record(one, 1)
    expect(owners.isAlone(one, 1)).toBe(true)
    expect(owners.isAlone(other, 1)).toBe(false)
    owners.record(other, 2)
    expect([one, other, third].map((each) => owners.isAlone(each, 2))).toEqual([false, false, false])
  })

  it('is alone again a minute later', () => {
    const owners = new RecentOwners()
    owners.record(other, 0)
    for (let nowMs = 0; nowMs <= 60_001; nowMs += 1_000) owners.record(one, nowMs)
    expect(owners.isAlone(one, 60_000)).toBe(false)
    expect(owners.isAlone(one, 60_001)).toBe(true)
    expect(owners.isAlone(other, 60_001)).toBe(false)
  })
})
