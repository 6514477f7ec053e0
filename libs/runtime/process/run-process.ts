import { flushCompileCache } from 'node:module'
import { constants } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import pino, { type Logger } from 'pino'
import {
  ConfigurationError,
  readSettings,
  type Settings,
  unknownVariables,
} from '#libs/runtime/config/settings.js'
import { StartError } from '#libs/runtime/errors.js'
import { LOGS_TO_TERMINAL, onEnter } from './terminal.js'

export interface ProcessContext {
  settings: Settings
  logger: Logger
  now: () => Date
}

export interface Running {
  /** Its addresses, for the log line `listening`. */
  listening: Readonly<Record<string, string | number>>
  /** The text for standard output, printed once, and again at Enter in a terminal; null if there is none. */
  welcome: (() => Promise<string>) | null
  /** Accepts nothing new, finishes the work in progress, and leaves nothing half written. */
  close(): Promise<void>
}

const DRAIN_WITHIN_MS = 60_000
const CHECK_PARENT_MS = 250

/**
 * Runs a process: reads the settings, starts, logs `listening`, and at SIGTERM or SIGINT closes and exits with code 0. If
 * it can't start, it prints a line with the reason and exits with code 1. A signal during the start, a second signal,
 * and a close that takes longer than a minute end it at once, by the signal.
 */
export async function runProcess(start: (context: ProcessContext) => Promise<Running>): Promise<void> {
  try {
    await run(start)
  } catch (error) {
    process.stderr.write(`mayfly: ${explain(error)}\n`)
    endProcess(1)
  }
}

async function run(start: (context: ProcessContext) => Promise<Running>): Promise<void> {
  const settings = readSettings(process.env)
  const logger = await makeLogger(settings)
  const ended = endedBySignal()
  const starting = start({ settings, logger, now: () => new Date() })
  const running = await Promise.race([starting, ended]).catch((error: unknown) => {
    // They may be the cause.
    logUnknownVariables(logger)
    throw error
  })
  if (typeof running === 'string') {
    // Nothing has been accepted yet, so it is as safe to exit as after a kill.
    starting.catch((error: unknown) => logger.debug({ err: error }, 'the start failed'))
    logger.info({ signal: running }, 'ended before the start was complete')
    logger.flush(() => endBy(running))
    return
  }
  logger.info(running.listening, 'listening')
  if (running.welcome !== null) await printWelcome(running.welcome, logger)
  // After the welcome, so that they are seen.
  logUnknownVariables(logger)
  // If NODE_COMPILE_CACHE is set, the next start uses the cache, however this process ends.
  flushCompileCache()

  const signal = await ended
  logger.info({ signal }, 'draining')
  const timer = setTimeout(() => endUndrained(logger, signal), DRAIN_WITHIN_MS)
  await running.close()
  clearTimeout(timer)
  logger.info('ended')
  logger.flush(() => endProcess(0))
}

async function printWelcome(welcome: () => Promise<string>, logger: Logger): Promise<void> {
  const print = async (): Promise<void> => void process.stdout.write(await welcome())
  await print()
  const isRead = onEnter(() =>
    print().catch((error: unknown) => logger.error({ err: error }, 'could not print the welcome again')),
  )
  if (isRead) process.stdout.write('Press Enter to print this again.\n\n')
}

function logUnknownVariables(logger: Logger): void {
  for (const { variable, isTypo, explanation } of unknownVariables(process.env)) {
    logger[isTypo ? 'error' : 'warn']({ variable }, explanation)
  }
}

/** Resolves at the first signal to end. At a second one the process ends at once. */
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

/** For processes that npm started: the shell in between does not forward signals, but dies of them. */
function whenOrphaned(end: () => void): void {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    end()
  }, CHECK_PARENT_MS).unref()
}

function endUndrained(logger: Logger, signal: NodeJS.Signals): void {
  logger.fatal('draining timed out: ended without it; everything that was acknowledged is durable')
  logger.flush(() => endBy(signal))
}

/** One clear line for errors that an operator can fix; the stack for unexpected ones. */
function explain(error: unknown): string {
  if (error instanceof ConfigurationError || error instanceof StartError) return error.message
  // The operating system's error message.
  if (error instanceof Error && 'syscall' in error) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/**
 * Calls `process.exit` without the risk of a hang: Node joins V8's threads on exit, and they may wait for a garbage
 * collection that never comes (nodejs/node#54918). A collection before the exit lets them finish, and frees the memory
 * that they need until they are joined.
 */
function endProcess(exitCode: number): never {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc()')
  process.exit(exitCode)
}

/**
 * Ends the process at once, as the signal does by default. `process.exit` can't: it waits for LMDB's writer, which may
 * wait for this thread, and frees the memory of ClickHouse's engine while that is still running.
 */
function endBy(signal: NodeJS.Signals): never {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  // The kernel ignores signals that the first process of a container sends to itself.
  process.exit(FROM_SIGNALS + constants.signals[signal])
}

/** Shells report a process that a signal ended as 128 plus the signal's number. */
const FROM_SIGNALS = 128

/** Properties that are left out on a terminal, so that a line fits. */
const NOT_ON_TERMINAL = 'reqId,accountId,keyId,bytesIn,bytesOut,remoteAddress,userAgent,clientRequestId'

/** Log lines go to standard error, as JSON, or in colour on a terminal. Secrets are removed. */
async function makeLogger({ logLevel }: Pick<Settings, 'logLevel'>): Promise<Logger> {
  const options = {
    level: logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: ['req.headers.authorization'],
    serializers: { err: loggedError },
  }
  // With a minimum length, `flush` waits until all lines are written or standard error is closed. Otherwise lines that are
  // left would be written on exit, again and again if it is closed (sonic-boom 4.2).
  if (!LOGS_TO_TERMINAL) return pino(options, pino.destination({ dest: 2, sync: false, minLength: 1 }))
  const { default: pretty } = await import('pino-pretty')
  // One line each. The stack of an error has its own lines.
  const format = { singleLine: true, ignore: NOT_ON_TERMINAL, translateTime: 'SYS:HH:MM:ss.l' }
  return pino(options, pretty({ destination: 2, sync: true, ...format }))
}

/**
 * The properties of an error that are logged. Clients attach more to theirs: ioredis adds the command that failed with
 * all its arguments, which may be a password or a whole mail.
 */
function loggedError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { type, message, stack } = pino.stdSerializers.err(error)
  const code = 'code' in error ? { code: error.code } : {}
  const errors = error instanceof AggregateError ? { errors: error.errors.map(loggedError) } : {}
  return { type, message, stack, ...code, ...errors }
}
