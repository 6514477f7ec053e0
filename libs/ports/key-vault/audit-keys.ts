import { signingKey, type SigningKey } from '#libs/domain/audit/checkpoint.js'
import type { LogId } from '#libs/domain/ids/typeid.js'
import type { DerivedKeys } from './master-key.js'

/**
 * The keys that sign an audit log: one from each configured master key, the current one first. So while an earlier master key
 * is configured, who knows only its key can verify new checkpoints too.
 */
export function auditKeysOf(secrets: DerivedKeys, id: LogId): SigningKey[] {
  return secrets.deriveKeys(`sign the audit log ${id}`).map(signingKey)
}
