import type { Settings } from '#libs/runtime/config/settings.js'

/** The clock, the settings and the state of this process that handlers use. */
export abstract class Instance {
  abstract readonly now: () => Date
  abstract readonly settings: Pick<
    Settings,
    | 'mailDomain'
    | 'maxMessageBytes'
    | 'streamStallMs'
    | 'publicInboxDomain'
    | 'publicInboxesPerAddress'
    | 'publicInboxesPerHour'
  >
  /** Whether the first key exists and every role has started. */
  abstract readonly isStarted: () => boolean
}
