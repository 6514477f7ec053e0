import { mintId } from '#libs/domain/ids/mint.js'
import { ordinaryMs, ParseBudget } from './parse-task.js'

const MIB = 1024 * 1024
const accountId = mintId('acc')

function mailOf({ inboxId = mintId('inb'), receivedAt = new Date(0), size = MIB } = {}) {
  return { accountId, inboxId, receivedAt, size }
}

describe('the budget of reading mail', () => {
  it('is spent where an inbox has had its share, and not for the others', () => {
    const budget = new ParseBudget({ inboxBudgetMs: 100, accountBudgetMs: 1_000 })
    const mail = mailOf()
    budget.spend(mail, 99)
    expect(budget.isSpent(mail)).toBe(false)
    budget.spend(mail, 1)
    expect(budget.isSpent(mail)).toBe(true)
    expect(budget.isSpent(mailOf())).toBe(false)
  })

  it('is spent for all inboxes where their account has had its share, but for small mails', () => {
    const budget = new ParseBudget({ inboxBudgetMs: 100, accountBudgetMs: 150 })
    budget.spend(mailOf(), 75)
    expect(budget.isSpent(mailOf())).toBe(false)
    budget.spend(mailOf(), 75)
    expect(budget.isSpent(mailOf())).toBe(true)
    expect(budget.isSpent(mailOf({ size: 5_000 }))).toBe(false)
    expect(budget.isSpent({ ...mailOf(), accountId: mintId('acc') })).toBe(false)
  })

  it('is new each minute of the mail’s own time, in whichever order the minutes come', () => {
    const budget = new ParseBudget({ inboxBudgetMs: 100, accountBudgetMs: 100 })
    const inboxId = mintId('inb')
    const [then, before, after] = [60_000, 59_999, 120_000].map((ms) =>
      mailOf({ inboxId, receivedAt: new Date(ms) }),
    )
    if (then === undefined || before === undefined || after === undefined) throw new Error('no mail')
    budget.spend(then, 100)
    expect([then, after, before].map((mail) => budget.isSpent(mail))).toEqual([true, false, false])
  })

  it('lets a small mail take more than is left, but not without end', () => {
    const budget = new ParseBudget({ inboxBudgetMs: 0, accountBudgetMs: 0 })
    const mail = mailOf({ size: 5_000 })
    expect([budget.isOver(mail, 50), budget.isOver(mail, 500)]).toEqual([false, true])
    expect(budget.isOver(mailOf(), 50)).toBe(true)
  })

  it('charges a mail that was ended with all that its inbox and its account had', () => {
    const budget = new ParseBudget({ inboxBudgetMs: 100, accountBudgetMs: 1_000 })
    const mail = mailOf()
    budget.spendAll(mail)
    expect([mail, mailOf(), mailOf({ size: 5_000 })].map((each) => budget.isSpent(each))).toEqual([
      true,
      true,
      false,
    ])
  })

  it('asks nothing for what a mail of its size may take', () => {
    expect(ordinaryMs(25 * MIB)).toBeGreaterThan(ordinaryMs(5_000) * 10)
  })
})
