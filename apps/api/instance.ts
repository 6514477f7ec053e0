import type { Settings } from '#libs/runtime/config/settings.js'

/** What handlers need to know of this instance. */
export abstract class Instance {
  abstract readonly now: () => Date
  abstract readonly settings: Pick<Settings, 'mailDomain' | 'maxMessageBytes' | 'streamStallMs'>
}
