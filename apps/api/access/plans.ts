import type { Logger } from 'pino'
import type { Account } from '#libs/domain/account/account.js'
import { planWith, unknownPlan, type Plan, type PlanTable } from '#libs/domain/account/plan.js'

/** The plans of this installation, and which of them holds for an account. */
export class Plans {
  /** Names of plans that are not configured and were logged: each is logged once. */
  private readonly missed = new Set<string>()

  constructor(
    private readonly table: PlanTable,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  get names(): string[] {
    return [...this.table.keys()]
  }

  named(name: string): Plan | null {
    return this.table.get(name) ?? null
  }

  /** The plan of an account. If it is no longer configured, the account keeps its data but has no API access. */
  of(account: Pick<Account, 'plan' | 'limits'>): Plan {
    const plan = this.find(account)
    if (plan !== null) return plan
    const { plan: name } = account
    if (!this.missed.has(name)) {
      this.missed.add(name)
      this.logger.warn(
        { plan: name, configured: this.names },
        'accounts are on a plan that is not configured: they have no API access',
      )
    }
    return unknownPlan(name)
  }

  /** The plan of an account with the account's own limits; null if it is not configured. */
  find({ plan: name, limits }: Pick<Account, 'plan' | 'limits'>): Plan | null {
    const plan = this.named(name)
    return plan && planWith(plan, limits)
  }
}
