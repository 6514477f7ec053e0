import { mintId } from '#libs/domain/ids/mint.js'
import { baselineMs, ParseAllowance } from './parse-allowance.js'

const MIB = 1024 * 1024
const accountId = mintId('acc')

/** The start of the next minute. */
const NEXT_MS = Math.ceil(Date.now() / 60_000) * 60_000

function mailOf({ inboxId = mintId('inb'), receivedAt = new Date(NEXT_MS), size = MIB } = {}) {
  return { accountId, inboxId, receivedAt, size }
}

/** While another account has mail. */
function allowanceOf(budgets: { inboxBudgetMs: number; accountBudgetMs: number }): ParseAllowance {
  const allowance = new ParseAllowance({ ...budgets, timeoutMs: 1_000, slowTimeoutMs: 1_000 })
  for (const each of [mintId('acc'), accountId]) allowance.recordMail(each)
  return allowance
}

describe('the budget of parsing mail', () => {
  it('is used up for one inbox and not for others', () => {
    const budget = allowanceOf({ inboxBudgetMs: 100, accountBudgetMs: 1_000 })
    const mail = mailOf()
    budget.spend(mail, 99)
    expect(budget.isSpent(mail)).toBe(false)
    budget.spend(mail, 1)
    expect(budget.isSpent(mail)).toBe(true)
    expect(budget.isSpent(mailOf())).toBe(false)
  })

  it('is used up for all inboxes of an account, except for small mails', () => {
    const budget = allowanceOf({ inboxBudgetMs: 100, accountBudgetMs: 150 })
    budget.spend(mailOf(), 75)
    expect(budget.isSpent(mailOf())).toBe(false)
    budget.spend(mailOf(), 75)
    expect(budget.isSpent(mailOf())).toBe(true)
    expect(budget.isSpent(mailOf({ size: 5_000 }))).toBe(false)
    expect(budget.isSpent({ ...mailOf(), accountId: mintId('acc') })).toBe(false)
  })

  it('exists for each minute of receipt, in any order of the minutes', () => {
    const budget = allowanceOf({ inboxBudgetMs: 100, accountBudgetMs: 100 })
    const inboxId = mintId('inb')
    const [then, before, after] = [NEXT_MS, NEXT_MS - 1, NEXT_MS + 60_000].map((ms) =>
      mailOf({ inboxId, receivedAt: new Date(ms) }),
    )
    if (then === undefined || before === undefined || after === undefined) throw new Error('no mail')
    budget.spend(then, 100)
    expect([then, after, before].map((mail) => budget.isSpent(mail))).toEqual([true, false, false])
  })

  it('lets a small mail exceed it by a bounded time', () => {
    const budget = allowanceOf({ inboxBudgetMs: 0, accountBudgetMs: 0 })
    const mail = mailOf({ size: 5_000 })
    expect([budget.isOver(mail, 50), budget.isOver(mail, 500)]).toEqual([false, true])
    expect(budget.isOver(mailOf(), 50)).toBe(true)
  })

  it('is used up by a mail whose thread was terminated', () => {
    const budget = allowanceOf({ inboxBudgetMs: 100, accountBudgetMs: 1_000 })
    const mail = mailOf()
    budget.spendAll(mail)
    expect([mail, mailOf(), mailOf({ size: 5_000 })].map((each) => budget.isSpent(each))).toEqual([
      true,
      true,
      false,
    ])
  })

  it('does not charge the baseline, which grows with the size', () => {
    expect(baselineMs(25 * MIB)).toBeGreaterThan(baselineMs(5_000) * 10)
  })
})
