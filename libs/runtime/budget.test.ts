import { setImmediate as turn } from 'node:timers/promises'
import { Budget, BudgetExhaustedError } from './fair-share.js'

/** Asks for an amount, and notes the owner once it is given. */
function ask(budget: Budget, given: string[], owner: string, amount: number, signal?: AbortSignal) {
  const asked = budget.take(owner, amount, signal).then((release) => {
    given.push(owner)
    return release
  })
  // Those still waiting when a test ends are refused later, while another suite runs.
  asked.catch(() => undefined)
  return asked
}

describe('a budget', () => {
  it('gives at once what is free, and to no owner more than its part', async () => {
    const budget = new Budget({ total: 10, perOwner: 6, waitMs: 5 })
    const release = await budget.take('a', 6)
    await expect(budget.take('a', 1)).rejects.toThrow(BudgetExhaustedError)
    await budget.take('b', 4)
    await expect(budget.take('c', 1)).rejects.toThrow(BudgetExhaustedError)
    release()
    release()
    expect(budget.inUse).toBe(4)
  })

  it('counts more than an owner may hold as that much', async () => {
    const budget = new Budget({ total: 10, perOwner: 6, waitMs: 5 })
    const release = await budget.take('a', 1_000)
    expect(budget.inUse).toBe(6)
    release()
    expect(budget.inUse).toBe(0)
  })

  it('gives in turn to the owners that wait', async () => {
    const budget = new Budget({ total: 1, perOwner: 1, waitMs: 10_000 })
    const given: string[] = []
    const release = await budget.take('a', 1)
    const asked = ['a', 'a', 'a', 'b', 'b', 'c'].map((owner) =>
      ask(budget, given, owner, 1).then((releaseNext) => releaseNext()),
    )
    release()
    await Promise.all(asked)
    expect(given).toEqual(['a', 'b', 'c', 'a', 'b', 'a'])
  })

  it('gives what becomes free to as many as it is enough for', async () => {
    const budget = new Budget({ total: 4, perOwner: 4, waitMs: 10_000 })
    const given: string[] = []
    const release = await budget.take('a', 4)
    void ask(budget, given, 'a', 1)
    void ask(budget, given, 'a', 1)
    void ask(budget, given, 'b', 1)
    release()
    await turn()
    expect(given.toSorted()).toEqual(['a', 'a', 'b'])
  })

  it('lets nobody past one that needs more than is left in all', async () => {
    const budget = new Budget({ total: 4, perOwner: 4, waitMs: 10_000 })
    const given: string[] = []
    const release = await budget.take('a', 2)
    void ask(budget, given, 'b', 4)
    void ask(budget, given, 'c', 1)
    await turn()
    expect(given).toEqual([])
    release()
    await turn()
    expect(given).toEqual(['b'])
  })

  it('lets others past an owner that holds its part', async () => {
    const budget = new Budget({ total: 4, perOwner: 2, waitMs: 10_000 })
    const given: string[] = []
    await budget.take('a', 2)
    void ask(budget, given, 'a', 1)
    void ask(budget, given, 'b', 2)
    await turn()
    expect(given).toEqual(['b'])
  })

  it('forgets who leaves, and goes on with the next', async () => {
    const budget = new Budget({ total: 2, perOwner: 2, waitMs: 10_000 })
    const given: string[] = []
    await budget.take('a', 1)
    const leaving = new AbortController()
    const left = ask(budget, given, 'b', 2, leaving.signal)
    void ask(budget, given, 'c', 1)
    leaving.abort()
    await expect(left).rejects.toThrow('aborted')
    await turn()
    expect(given).toEqual(['c'])
    expect(budget.isContended).toBe(false)
    await expect(budget.take('b', 1, leaving.signal)).rejects.toThrow('aborted')
  })
})
