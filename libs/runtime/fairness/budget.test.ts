import { setImmediate as turn } from 'node:timers/promises'
import { Budget, BudgetExhaustedError } from './budget.js'

/** Takes an amount, and adds the owner to `given` once it has it. */
function take(budget: Budget, given: string[], owner: string, amount: number, signal?: AbortSignal) {
  const taken = budget.take(owner, amount, signal).then((release) => {
    given.push(owner)
    return release
  })
  // A wait that outlasts its test is rejected while another suite runs.
  taken.catch(() => undefined)
  return taken
}

describe('a budget', () => {
  it('gives what is free at once, and no owner more than its maximum', async () => {
    const budget = new Budget({ total: 10, perOwner: 6, waitMs: 5 })
    const release = await budget.take('a', 6)
    await expect(budget.take('a', 1)).rejects.toThrow(BudgetExhaustedError)
    await budget.take('b', 4)
    await expect(budget.take('c', 1)).rejects.toThrow(BudgetExhaustedError)
    release()
    release()
    expect(budget.inUse).toBe(4)
  })

  it('gives an owner more while no other has taken anything', async () => {
    const budget = new Budget({ total: 100, perOwner: 6, perOwnerAlone: 10, waitMs: 5 })
    const releases = await Promise.all([budget.take('a', 6), budget.take('a', 4)])
    await expect(budget.take('a', 1)).rejects.toThrow(BudgetExhaustedError)
    await budget.take('b', 6)
    releases[1]()
    await expect(budget.take('a', 1)).rejects.toThrow(BudgetExhaustedError)
    releases[0]()
    await budget.take('a', 6)
    await expect(budget.take('a', 1)).rejects.toThrow(BudgetExhaustedError)
  })

  it('reduces an amount to the maximum of its owner', async () => {
    const budget = new Budget({ total: 10, perOwner: 6, waitMs: 5 })
    const release = await budget.take('a', 1_000)
    expect(budget.inUse).toBe(6)
    release()
    expect(budget.inUse).toBe(0)
  })

  it('serves waiting owners in turn', async () => {
    const budget = new Budget({ total: 1, perOwner: 1, waitMs: 10_000 })
    const given: string[] = []
    const release = await budget.take('a', 1)
    const takes = ['a', 'a', 'a', 'b', 'b', 'c'].map((owner) =>
      take(budget, given, owner, 1).then((releaseNext) => releaseNext()),
    )
    release()
    await Promise.all(takes)
    expect(given).toEqual(['a', 'b', 'c', 'a', 'b', 'a'])
  })

  it('serves as many waiters as fit when an amount becomes free', async () => {
    const budget = new Budget({ total: 4, perOwner: 4, waitMs: 10_000 })
    const given: string[] = []
    const release = await budget.take('a', 4)
    void take(budget, given, 'a', 1)
    void take(budget, given, 'a', 1)
    void take(budget, given, 'b', 1)
    release()
    await turn()
    expect(given.toSorted()).toEqual(['a', 'a', 'b'])
  })

  it('lets no smaller amount overtake one that does not fit into the rest', async () => {
    const budget = new Budget({ total: 4, perOwner: 4, waitMs: 10_000 })
    const given: string[] = []
    const release = await budget.take('a', 2)
    void take(budget, given, 'b', 4)
    void take(budget, given, 'c', 1)
    await turn()
    expect(given).toEqual([])
    release()
    await turn()
    expect(given).toEqual(['b'])
  })

  it('lets other owners overtake one that holds its maximum', async () => {
    const budget = new Budget({ total: 4, perOwner: 2, waitMs: 10_000 })
    const given: string[] = []
    await budget.take('a', 2)
    void take(budget, given, 'a', 1)
    void take(budget, given, 'b', 2)
    await turn()
    expect(given).toEqual(['b'])
  })

  it('skips a waiter that was aborted', async () => {
    const budget = new Budget({ total: 2, perOwner: 2, waitMs: 10_000 })
    const given: string[] = []
    await budget.take('a', 1)
    const leaving = new AbortController()
    const left = take(budget, given, 'b', 2, leaving.signal)
    void take(budget, given, 'c', 1)
    leaving.abort()
    await expect(left).rejects.toThrow('aborted')
    await turn()
    expect(given).toEqual(['c'])
    expect(budget.isContended).toBe(false)
    await expect(budget.take('b', 1, leaving.signal)).rejects.toThrow('aborted')
  })
})
