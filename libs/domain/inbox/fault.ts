import { crc32 } from 'node:zlib'
import Type from 'typebox'
import type { ValueOf } from '#libs/domain/event-sourcing/declare.js'
import * as field from '#libs/domain/event-sourcing/declare.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'

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

const fault = field.object({
  stage: field.oneOf(FAULT_STAGES),
  action: field.oneOf(FAULT_ACTIONS),
  /** The reply to what is rejected: 400 to 599. */
  code: field.optional(field.count, null),
  enhancedCode: field.optional(field.text, null),
  text: field.optional(field.text, null),
  /** Null unless it delays. */
  delayMs: field.optional(field.count, null),
  /** Only the first attempts of each sender and recipient. */
  firstN: field.optional(field.count, null),
  /** Only every nth attempt. */
  everyN: field.optional(field.count, null),
  /** Only with this probability, which is drawn from the seed and the number of the attempt. */
  probability: field.optional(field.plain(Type.Number({ minimum: 0, maximum: 1 })), null),
  seed: field.optional(field.count, null),
})

/** A fault applies to an attempt if all of its conditions (`firstN`, `everyN`, `probability`) hold. */
export type Fault = ValueOf<typeof fault>

export const faults = field.list(fault)

/** The default faults as those of one new inbox: each inbox has seeds of its own. Null if there are none. */
export function faultsForInbox(defaults: readonly Fault[], inboxId: InboxId): readonly Fault[] | null {
  if (defaults.length === 0) return null
  return defaults.map((each) => {
    if (each.seed === null) return each
    return { ...each, seed: crc32(`${each.seed} ${inboxId}`) }
  })
}

/** Whether two lists have the same faults in the same order. */
export function haveSameFaults(one: readonly Fault[], other: readonly Fault[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
