import { MemoryBudget } from './memory-budget.js'

describe('memory budget', () => {
  it('lets wait in order what does not fit, and takes more than the limit alone', async () => {
    const budget = new MemoryBudget(10)
    const entered: string[] = []
    await budget.take(6)
    const large = budget.take(100).then(() => entered.push('large'))
    const small = budget.take(1).then(() => entered.push('small'))
    await new Promise(setImmediate)
    expect(entered).toEqual([])
    budget.giveBack(6)
    await large
    expect(entered).toEqual(['large'])
    budget.giveBack(100)
    await small
    expect(entered).toEqual(['large', 'small'])
  })
})
