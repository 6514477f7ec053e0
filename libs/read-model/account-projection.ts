import { evolve, type AccountSlice } from '#libs/account/account.js'
import type { AccountEvent } from '#libs/account/events.js'
import type { Change } from './views.js'

/** What one event changes in the views of accounts and keys. */
export function projectAccountEvent(before: AccountSlice, event: AccountEvent): Change[] {
  const after = evolve(before, event)
  const changes: Change[] = []
  if (after.account !== null && after.account !== before.account) {
    changes.push({ type: 'put-account', account: after.account })
  }
  if (after.key !== null && after.key !== before.key) changes.push({ type: 'put-key', key: after.key })
  return changes
}
