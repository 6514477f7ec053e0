import pino, { type Logger } from 'pino'
import pretty from 'pino-pretty'
import type { Settings } from '#libs/config/settings.js'

/** Log lines go to standard error: JSON, or colours on a terminal. What never belongs in one is cut out. */
export function makeLogger({ logLevel }: Pick<Settings, 'logLevel'>): Logger {
  const options = {
    level: logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: ['req.headers.authorization'],
  }
  const stream = process.stderr.isTTY
    ? pretty({ destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' })
    : pino.destination({ dest: 2, sync: false })
  return pino(options, stream)
}
