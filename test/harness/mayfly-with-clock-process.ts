import 'reflect-metadata'
import pino from 'pino'
import { startStandalone } from '#apps/standalone/standalone.js'
import { readSettings } from '#libs/runtime/config/settings.js'

/*
 * The process that mayfly-with-clock.ts forks: all roles, on a clock that each message sets. It acknowledges each
 * message, and closes the roles when its parent disconnects.
 */

/** A clock that stands still, or one that runs ahead of the real one. */
export type Clock = { nowMs: number } | { aheadMs: number }

let clock: Clock = { nowMs: Number(process.env.TEST_NOW_MS) }

const roles = await startStandalone({
  settings: readSettings(process.env),
  logger: pino({ level: 'silent' }),
  now: () => new Date('nowMs' in clock ? clock.nowMs : Date.now() + clock.aheadMs),
  announce: () => undefined,
})

process.on('message', (message) => {
  clock = message as Clock
  process.send?.('set')
})
process.on('disconnect', () => {
  void roles.close().then(() => process.exit(0))
})
process.send?.({ url: roles.url, smtpPort: roles.smtp.port })
