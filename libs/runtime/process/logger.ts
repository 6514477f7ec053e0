import pino, { type Logger } from 'pino'
import type { Settings } from '#libs/runtime/config/settings.js'

/** Log lines go to standard error: JSON, or colours on a terminal. What never belongs in one is cut out. */
export async function makeLogger({ logLevel }: Pick<Settings, 'logLevel'>): Promise<Logger> {
  const options = {
    level: logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: ['req.headers.authorization'],
    serializers: { err: shownError },
  }
  if (!process.stderr.isTTY) return pino(options, pino.destination({ dest: 2, sync: false }))
  const { default: pretty } = await import('pino-pretty')
  return pino(options, pretty({ destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' }))
}

/**
 * What a line shows of an error. Clients hang more on theirs: ioredis the command that failed with all its arguments,
 * a password or a whole mail among them.
 */
function shownError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { type, message, stack } = pino.stdSerializers.err(error)
  const code = 'code' in error ? { code: error.code } : {}
  const errors = error instanceof AggregateError ? { errors: error.errors.map(shownError) } : {}
  return { type, message, stack, ...code, ...errors }
}
