import { as, issueKey, openAccount } from '#test/harness/accounts.js'
import type { Target } from '#test/harness/client.js'

/** An account of its own, by a key of it that may do all there is to do with mail. */
export async function accountOn(target: Target): Promise<Target> {
  const { key } = await openAccount(target, { name: 'One', plan: 'enterprise' })
  const scopes = ['inboxes', 'read']
  return as(target, await issueKey(as(target, key), { scopes, environment: 'development' }))
}
