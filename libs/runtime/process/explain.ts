import { ConfigurationError } from '#libs/runtime/config/settings.js'
import { StartError } from './start-error.js'

/** One clear line for what an operator can mend, the whole error for what nobody expected. */
export function explain(error: unknown): string {
  if (error instanceof ConfigurationError || error instanceof StartError) return error.message
  // The operating system's own words for what it would not do.
  if (error instanceof Error && 'syscall' in error) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
