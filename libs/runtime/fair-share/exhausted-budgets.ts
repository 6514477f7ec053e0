import { Counter, type Registry } from 'prom-client'

const NAME = 'mayfly_budget_exhausted_total'

/** Returns how to count, by the budget's name, that somebody has waited too long for it. Roles may share a registry. */
export function countExhausted(registry: Registry): (budget: string) => void {
  const known = registry.getSingleMetric(NAME)
  const counter =
    known instanceof Counter
      ? known
      : new Counter({
          name: NAME,
          help: 'Pieces of work that waited too long for what accounts share, by the name of the budget.',
          labelNames: ['budget'],
          registers: [registry],
        })
  return (budget) => counter.inc({ budget })
}
