import type { EngineName } from '#test/harness/mayfly.js'
import type { Figure } from './figure.js'
import type { Plan } from './plan.js'

export interface SectionContext {
  plan: Plan
  engine: EngineName
  profileDir: string | null
  /** Prints progress. */
  say: (line: string) => void
}

/** Measures one thing, and cleans up after itself. */
export type Section = (context: SectionContext) => Figure[] | Promise<Figure[]>
