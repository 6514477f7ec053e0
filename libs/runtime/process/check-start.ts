import { createServer } from 'node:net'
import { readSettings } from '#libs/runtime/config/settings.js'
import type { Environment } from '#libs/runtime/config/setting.js'
import { listenError } from './listen-error.js'

/**
 * Rejects with ConfigurationError or StartError if a start of all roles in one process would fail with these variables,
 * because a setting is invalid or a port can't be opened. Needs no build.
 */
export async function checkStart(environment: Environment): Promise<void> {
  const { httpHost, httpPort, metricsPort, smtpHost, smtpPort, smtpsPort } = readSettings(environment)
  const servers = [
    { host: httpHost, port: httpPort, names: { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_HTTP_PORT' } },
    { host: httpHost, port: metricsPort, names: { host: 'MAYFLY_HTTP_HOST', port: 'MAYFLY_METRICS_PORT' } },
    { host: smtpHost, port: smtpPort, names: { host: 'MAYFLY_SMTP_HOST', port: 'MAYFLY_SMTP_PORT' } },
    { host: smtpHost, port: smtpsPort, names: { host: 'MAYFLY_SMTP_HOST', port: 'MAYFLY_SMTPS_PORT' } },
  ]
  for (const { host, port, names } of servers) {
    if (port === null) continue
    await new Promise<void>((resolve, reject) => {
      const server = createServer()
      server.once('error', (error) => reject(listenError(error, names)))
      server.listen(port, host, () => server.close(() => resolve()))
    })
  }
}
