import { ConfigurationError } from '#libs/config/settings.js'
import { StartError } from '#libs/engine/start-error.js'

const PORT_SETTINGS = 'MAYFLY_HTTP_PORT, MAYFLY_SMTP_PORT or MAYFLY_METRICS_PORT'

/** One clear line for what an operator can mend, the whole error for what nobody expected. */
export function explain(error: unknown): string {
  if (error instanceof ConfigurationError || error instanceof StartError) return error.message
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
