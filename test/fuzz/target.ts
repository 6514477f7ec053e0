import type fc from 'fast-check'

/** Something that takes input from outside, and what must hold for any input. */
export interface FuzzTarget {
  /** What to fuzz it with; fails where what must hold does not. */
  readonly property: fc.IRawProperty<unknown>
  /** What must hold once the runs are over; rejects where it does not. */
  settle(): Promise<void>
  close(): Promise<void>
}

/** Targets by name, each opened when it is wanted. */
export type FuzzTargets = Readonly<Record<string, () => Promise<FuzzTarget>>>
