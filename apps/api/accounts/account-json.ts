import type { Static } from 'typebox'
import type { Account } from '#libs/domain/account/account.js'
import type { Plan } from '#libs/domain/account/plan.js'
import type { Account as AccountSchema } from './account-schemas.js'

export interface AccountFacts {
  account: Account
  /** As it is for this account; null if it is not configured. */
  plan: Plan | null
  /** Of the keys that are not revoked. */
  environments: readonly string[]
  maxMessageBytes: number
}

/** An account as the contract has it. */
export function accountJson({
  account,
  plan,
  environments,
  maxMessageBytes,
}: AccountFacts): Static<typeof AccountSchema> {
  return {
    id: account.id,
    name: account.name,
    plan: account.plan,
    limits:
      plan === null
        ? null
        : {
            requests_per_minute: plan.requestsPerMinute,
            retention: plan.retention.text,
            max_message_bytes: maxMessageBytes,
            max_messages: plan.maxMessages,
          },
    environments: [...environments],
    created_at: account.openedAt.toISOString(),
  }
}
