import { readFileSync } from 'node:fs'
import { parsePolicy, type WitnessPolicy } from '#libs/domain/audit/witness-policy.js'
import { ConfigurationError } from '#libs/runtime/config/settings.js'
import { SETTINGS } from '#libs/runtime/config/settings-table.js'
import { messageOf } from '#libs/runtime/errors.js'

/** Reads the file of MAYFLY_AUDIT_WITNESS_POLICY; null without one. Throws ConfigurationError. */
export function readWitnessPolicy(path: string | null): WitnessPolicy | null {
  if (path === null) return null
  try {
    return parsePolicy(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new ConfigurationError([`${SETTINGS.auditWitnessPolicy.variable}: ${messageOf(error)}`])
  }
}
