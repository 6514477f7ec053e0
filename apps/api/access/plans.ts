import type { Logger } from 'pino'
import type { Account } from '#libs/domain/account/account.js'
import {
  planWith,
  unknownPlan,
  type AccountLimits,
  type Plan,
  type PlanTable,
} from '#libs/domain/account/plan.js'

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
  of({ plan: name, limits }: { plan: string; limits: AccountLimits | null }): Plan {
    const plan = this.named(name)
    if (plan !== null) return planWith(plan, limits)
    if (!this.missed.has(name)) {
      this.missed.add(name)
      this.logger.warn(
        { plan: name, configured: this.names },
        'accounts are on a plan that is not configured: they have no API access',
      )
    }
    return unknownPlan(name)
  }

  /** Whether the account's plan is configured. */
  isKnown({ plan }: Pick<Account, 'plan'>): boolean {
    return this.table.has(plan)
  }
}
