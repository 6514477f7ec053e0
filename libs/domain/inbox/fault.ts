import Type from 'typebox'
import {
  count,
  list,
  object,
  oneOf,
  optional,
  plain,
  text,
  type ValueOf,
} from '#libs/domain/event-sourcing/declare.js'

/*
 * Faults on purpose: how an inbox misbehaves towards the senders of its mail, for tests of their error handling.
 */

export const FAULT_STAGES = ['rcpt', 'data', 'after_accept'] as const
export type FaultStage = (typeof FAULT_STAGES)[number]

export const FAULT_ACTIONS = ['reject', 'delay', 'drop', 'duplicate'] as const
export type FaultAction = (typeof FAULT_ACTIONS)[number]

/** The actions that a fault may have at each stage. */
export const ACTIONS_AT: Readonly<Record<FaultStage, readonly FaultAction[]>> = {
  rcpt: ['reject', 'delay'],
  data: ['reject', 'delay'],
  after_accept: ['drop', 'duplicate'],
}

/** Faults of an inbox, at most. */
export const MAX_FAULTS = 16

const fault = object({
  stage: oneOf(FAULT_STAGES),
  action: oneOf(FAULT_ACTIONS),
  /** The reply to what is rejected: 400 to 599. */
  code: optional(count, null),
  enhancedCode: optional(text, null),
  text: optional(text, null),
  /** Null unless it delays. */
  delayMs: optional(count, null),
  /** Only the first attempts of each sender and recipient. */
  firstN: optional(count, null),
  /** Only every nth attempt. */
  everyN: optional(count, null),
  /** Only with this probability, which is drawn from the seed and the number of the attempt. */
  probability: optional(plain(Type.Number({ minimum: 0, maximum: 1 })), null),
  seed: optional(count, null),
})

/** A fault applies to an attempt if all of its conditions (`firstN`, `everyN`, `probability`) hold. */
export type Fault = ValueOf<typeof fault>

export const faults = list(fault)

/** Whether two lists have the same faults in the same order. */
export function haveSameFaults(one: readonly Fault[], other: readonly Fault[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
