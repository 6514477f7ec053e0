import type { Settings } from '#libs/runtime/config/settings.js'

/** The clock and the settings that handlers use. */
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
}
