import { flushCompileCache } from 'node:module'
import { constants } from 'node:os'
import pino, { type Logger } from 'pino'
import {
  ConfigurationError,
  readSettings,
  type Settings,
  unknownVariables,
} from '#libs/runtime/config/settings.js'
import { StartError } from '#libs/runtime/errors.js'
import { exposedGc } from './resident-memory.js'

export interface ProcessContext {
  settings: Settings
  logger: Logger
  now: () => Date
}

/** What a process does once it is up. */
export interface Running {
  /** Where it listens, for the log line that says so. */
  listening: Readonly<Record<string, string | number>>
  /** Shown on standard output; empty for nothing. */
  welcome: string
  /** Takes nothing new in, finishes what is under way, and leaves nothing half written. */
  close(): Promise<void>
}

const DRAIN_WITHIN_MS = 60_000
const PARENT_LOOK_MS = 250

/**
 * The life of a process: reads the settings, starts, logs `listening`, and closes at SIGTERM or SIGINT with exit
 * code 0. What keeps it from starting ends it with 1 and a line that says why. A signal while it starts, a second one,
 * and a minute in which it could not close, end it at once, by the signal.
 */
export async function runProcess(start: (context: ProcessContext) => Promise<Running>): Promise<void> {
  try {
    await live(start)
  } catch (error) {
    process.stderr.write(`mayfly: ${explain(error)}\n`)
    endProcess(1)
  }
}

async function live(start: (context: ProcessContext) => Promise<Running>): Promise<void> {
  const settings = readSettings(process.env)
  const logger = await makeLogger(settings)
  for (const variable of unknownVariables(process.env))
    logger.warn({ variable }, 'this variable is not a setting')
  const ended = endedBySignal()
  const starting = start({ settings, logger, now: () => new Date() })
  const running = await Promise.race([starting, ended])
  if (typeof running === 'string') {
    // Nothing was taken in yet: what has started is as safe to end as by a kill.
    starting.catch((error: unknown) => logger.debug({ err: error }, 'the start failed'))
    logger.info({ signal: running }, 'ended before it had started')
    logger.flush(() => endBy(running))
    return
  }
  logger.info(running.listening, 'listening')
  process.stdout.write(running.welcome)
  // Where NODE_COMPILE_CACHE is set: the next start finds what this one compiled, however this process ends.
  flushCompileCache()

  const signal = await ended
  logger.info({ signal }, 'draining')
  const timer = setTimeout(() => giveUp(logger, signal), DRAIN_WITHIN_MS)
  await running.close()
  clearTimeout(timer)
  logger.info('ended')
  logger.flush(() => endProcess(0))
}

/** Resolves at the first signal to end; at a second one the process ends at once. */
function endedBySignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    if (process.env.npm_lifecycle_event !== undefined) whenOrphaned(() => resolve('SIGTERM'))
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        process.once(signal, endBy)
        resolve(signal)
      })
    }
  })
}

/** The shell between npm and this process dies of a signal without handing it on. */
function whenOrphaned(end: () => void): void {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    end()
  }, PARENT_LOOK_MS).unref()
}

function giveUp(logger: Logger, signal: NodeJS.Signals): void {
  logger.fatal('draining took too long: ended without it; what was acknowledged is durable')
  logger.flush(() => endBy(signal))
}

/** One clear line for what an operator can mend, the whole error for what nobody expected. */
function explain(error: unknown): string {
  if (error instanceof ConfigurationError || error instanceof StartError) return error.message
  // The operating system's own words for what it would not do.
  if (error instanceof Error && 'syscall' in error) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/**
 * Ends the process as `process.exit` does, and surely: V8's threads, which Node joins on its way out, may wait for a
 * garbage collection that nobody is left to make (nodejs/node#54918). One made here lets them go on, and leaves them
 * the room that they need until they are joined.
 */
function endProcess(exitCode: number): never {
  const collectGarbage = exposedGc()
  collectGarbage()
  process.exit(exitCode)
}

/**
 * Ends the process at once, whatever is under way, as the signal does where nobody listens for it. `process.exit` can't:
 * it waits for LMDB's writer, which may wait for this very thread, and takes its memory from ClickHouse's engine while
 * that goes on.
 */
function endBy(signal: NodeJS.Signals): never {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  // The first process of a container is spared its own signals.
  process.exit(FROM_SIGNALS + constants.signals[signal])
}

/** As shells tell of processes that a signal ended. */
const FROM_SIGNALS = 128

/** Log lines go to standard error: JSON, or colours on a terminal. What never belongs in one is cut out. */
async function makeLogger({ logLevel }: Pick<Settings, 'logLevel'>): Promise<Logger> {
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
