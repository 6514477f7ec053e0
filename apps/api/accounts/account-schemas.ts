import Type, { type Static } from 'typebox'
import type { Account as AccountState } from '#libs/domain/account/account.js'
import type { Plan } from '#libs/domain/account/access.js'
import { KeyWithSecret, newKeyJson, type NewKey } from '../keys/key-schemas.js'
import { Count, IdOf, OrNull, Time } from '../openapi/describe.js'

const Limits = Type.Object(
  {
    requests_per_minute: Count(
      'The sustained rate of each key. In addition, a burst of half as many every ten minutes.',
    ),
    retention: Type.String({ pattern: '^\\d+[mhdw]$', description: 'The maximum lifetime of an inbox.' }),
    max_message_bytes: Count('The maximum size of a mail.'),
    max_messages: Count('The maximum number of messages in one inbox.'),
  },
  { $id: 'Limits', description: 'The limits of an account.' },
)

const account = {
  id: IdOf('acc', 'The id of the account.'),
  name: Type.String({ description: 'A name to show to people.' }),
  plan: Type.String({ description: 'The name of its plan.' }),
  limits: OrNull(Limits, 'Null if its plan is no longer configured. The account then has no API access.'),
  environments: Type.Array(Type.String(), {
    description: 'The environments of its keys that are not revoked.',
  }),
  created_at: Time('When it was opened.'),
}

const example = {
  id: 'acc_01jd6axq2ve9r5t1y3n7m4k8c6',
  name: 'Example Ltd',
  plan: 'pro',
  limits: {
    requests_per_minute: 1000,
    retention: '30d',
    max_message_bytes: 26_214_400,
    max_messages: 100_000,
  },
  environments: ['production', 'staging'],
  created_at: '2026-11-20T08:00:00.000Z',
}

export const Account = Type.Object(account, {
  $id: 'Account',
  description: 'The owner of keys and inboxes, with its limits.',
  examples: [example],
})

/** An account in the answers that open it or change its plan. */
export const AccountWithKey = Type.Object(
  {
    ...account,
    key: OrNull(
      KeyWithSecret,
      'Its first key with the scope `admin`. The secret is only in this answer. Null if the account already has such a key, or no API access.',
    ),
  },
  { $id: 'AccountWithKey', description: 'An account, with its new key, if one was issued.' },
)

export interface AccountFacts {
  account: AccountState
  /** The plan with the account's own limits; null if the plan is not configured. */
  plan: Plan | null
  /** The environments of the keys that are not revoked. */
  environments: readonly string[]
  maxMessageBytes: number
}

/** An account, and the key that was issued to it; null if none was. */
export interface AccountFactsWithKey extends AccountFacts {
  key: NewKey | null
}

/** An account as JSON. */
export function accountJson({
  account: { id, name, plan: planName, openedAt },
  plan,
  environments,
  maxMessageBytes,
}: AccountFacts): Static<typeof Account> {
  const limits = plan && {
    requests_per_minute: plan.requestsPerMinute,
    retention: plan.retention.text,
    max_message_bytes: maxMessageBytes,
    max_messages: plan.maxMessages,
  }
  const created_at = openedAt.toISOString()
  return { id, name, plan: planName, limits, environments: [...environments], created_at }
}

export function accountWithKeyJson(facts: AccountFactsWithKey): Static<typeof AccountWithKey> {
  return { ...accountJson(facts), key: facts.key && newKeyJson(facts.key) }
}
