import type { Recorder } from '#libs/ports/event-log/recorder.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import type { KnownKeys } from '../access/known-keys.js'
import type { Plans } from '../access/plans.js'

/** What the handlers of accounts and keys need to know of this instance. */
export abstract class AccountsContext {
  abstract readonly recorder: Recorder
  abstract readonly now: () => Date
  abstract readonly plans: Plans
  abstract readonly keyUse: KeyUse
  abstract readonly knownKeys: Pick<KnownKeys, 'forgetAll'>
  /** Of one mail, whatever the plan. */
  abstract readonly maxMessageBytes: number
}
