import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import type { Settings } from '#libs/runtime/config/settings.js'

/** Data files, threads, connections to stores, and SMTP connections that are being refused. Deliveries come on top. */
const OTHER_FILES = 200
/** At least this share of the limit is for connections. */
const MIN_SHARE = 1 / 4

type Maxima = Pick<Settings, 'httpMaxConnections' | 'smtpMaxConnections' | 'webhookConcurrency'>

/**
 * Returns the settings with fewer HTTP and SMTP connections if the system's limit of open files does not suffice, and logs
 * that. Without that, connections to one port could take the files that all others need.
 */
export function withinOpenFiles<Given extends Maxima>(
  settings: Given,
  logger: Pick<Logger, 'warn'>,
  limit = openFileLimit(),
): Given {
  const { httpMaxConnections, smtpMaxConnections, webhookConcurrency } = settings
  const wanted = httpMaxConnections + smtpMaxConnections
  const others = OTHER_FILES + webhookConcurrency
  const left = Math.max(limit - others, limit * MIN_SHARE)
  if (wanted <= left) return settings
  const bounded = {
    httpMaxConnections: Math.max(Math.floor((httpMaxConnections * left) / wanted), 1),
    smtpMaxConnections: Math.max(Math.floor((smtpMaxConnections * left) / wanted), 1),
  }
  logger.warn(
    { openFiles: limit, ...bounded },
    `the limit of open files is too low for all connections: set it to ${wanted + others} (ulimit -n), or lower ` +
      'MAYFLY_HTTP_MAX_CONNECTIONS and MAYFLY_SMTP_MAX_CONNECTIONS',
  )
  return { ...settings, ...bounded }
}

/** From proc_pid_limits(5); Node has raised the soft limit to the hard one. Infinite on systems without /proc. */
function openFileLimit(): number {
  try {
    const [, files] = /^Max open files +(\d+) /m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return files === undefined ? Infinity : Number(files)
  } catch {
    return Infinity
  }
}
