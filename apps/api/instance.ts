import type { Settings } from '#libs/runtime/config/settings.js'

/** The token of the Engine for Nest. Classes that it creates type it as the ports that they use. */
export const ENGINE = Symbol('engine')

/** The clock, the settings and the state of this process that handlers use. */
export abstract class Instance {
  abstract readonly now: () => Date
  abstract readonly settings: Settings
  /** The port at which mail is received: the setting, or a free port if that is 0 and SMTP runs in this process. */
  abstract readonly smtpPort: () => number
  /** Whether the first key exists and every role has started. */
  abstract readonly isStarted: () => boolean
}
