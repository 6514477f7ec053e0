import 'reflect-metadata'
import type { Logger } from 'pino'
import { ConfigurationError, readSettings, unknownVariables } from '#libs/config/settings.js'
import { DataDirError } from '#libs/engine/data-dir.js'
import { makeLogger } from './logger.js'
import { startStandalone } from './standalone.js'
import { welcomeText } from './welcome.js'

const DRAIN_WITHIN_MS = 60_000
const PARENT_LOOK_MS = 250
const PORT_SETTINGS = 'MAYFLY_HTTP_PORT, MAYFLY_SMTP_PORT or MAYFLY_METRICS_PORT'

try {
  await main()
} catch (error) {
  process.stderr.write(`mayfly: ${explain(error)}\n`)
  process.exit(1)
}

async function main(): Promise<void> {
  const settings = readSettings(process.env)
  const logger = makeLogger(settings)
  for (const variable of unknownVariables(process.env))
    logger.warn({ variable }, 'this variable is not a setting')
  const ended = endedBySignal()
  const mayfly = await startStandalone({
    settings,
    logger,
    now: () => new Date(),
    announce: (secret) => process.stdout.write(`mayfly: made the first API key: ${secret}\n`),
  })
  const { url, httpPort, smtpPort } = mayfly
  logger.info({ url, httpPort, smtpPort }, 'listening')
  process.stdout.write(welcomeText(mayfly))

  const signal = await ended
  logger.info({ signal }, 'draining')
  const timer = setTimeout(() => giveUp(logger), DRAIN_WITHIN_MS)
  await mayfly.close()
  clearTimeout(timer)
  logger.info('ended')
  logger.flush(() => process.exit(0))
}

/** Resolves at the first signal to end; at a second one the process ends at once. */
function endedBySignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    if (process.env.npm_lifecycle_event !== undefined) whenOrphaned(() => resolve('SIGTERM'))
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1))
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

function giveUp(logger: Logger): void {
  logger.fatal('draining took too long: ended without it; what was acknowledged is durable')
  logger.flush(() => process.exit(1))
}

/** One clear line for what an operator can mend, the whole error for what nobody expected. */
function explain(error: unknown): string {
  if (error instanceof ConfigurationError || error instanceof DataDirError) return error.message
  if (error instanceof Error && 'code' in error && 'port' in error) {
    const address = 'address' in error ? String(error.address) : ''
    if (error.code === 'EADDRINUSE') {
      return `port ${String(error.port)} of ${address} is taken; set ${PORT_SETTINGS} to a free one`
    }
    if (error.code === 'EACCES')
      return `port ${String(error.port)} of ${address} may not be opened by this user`
  }
  // The operating system's own words for what it would not do: a host that is none, a file that is not there.
  if (error instanceof Error && 'syscall' in error) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
