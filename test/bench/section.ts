import type { EngineName } from '#test/harness/mayfly.js'
import type { Figure } from './figure.js'
import type { Plan } from './plan.js'

export interface SectionContext {
  plan: Plan
  engine: EngineName
  profileDir: string | null
  /** Tells the reader what is going on. */
  say: (line: string) => void
}

/** Measures something, and leaves nothing behind. */
export type Section = (context: SectionContext) => Promise<Figure[]>
