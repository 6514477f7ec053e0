import Type, { type Static } from 'typebox'
import type { Account as AccountState } from '#libs/domain/account/account.js'
import type { Plan } from '#libs/domain/account/access.js'
import { KeyWithSecret, newKeyJson, type NewKey } from '../keys/key-schemas.js'
import { Count, IdOf, OrNull, Time } from '../openapi/describe.js'

const Limits = Type.Object(
  {
    requests_per_minute: Count(
      'Of each key, sustained; a burst of half as many comes on top every ten minutes.',
    ),
    retention: Type.String({ pattern: '^\\d+[mhdw]$', description: 'The longest life of an inbox.' }),
    max_message_bytes: Count('The largest mail that is accepted.'),
    max_messages: Count('Most messages in one inbox.'),
  },
  { $id: 'Limits', description: 'How much an account may do.' },
)

const account = {
  id: IdOf('acc', 'Stays with it.'),
  name: Type.String({ description: 'For people.' }),
  plan: Type.String({ description: 'The name of its plan.' }),
  limits: OrNull(Limits, 'Null where its plan is configured no longer: it has no API access then.'),
  environments: Type.Array(Type.String(), { description: 'Of its keys that are not revoked.' }),
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
  description: 'Whom keys and inboxes belong to, and how much it may do.',
  examples: [example],
})

/** An account in the answer to its opening, and to a change of its plan. */
export const AccountWithKey = Type.Object(
  {
    ...account,
    key: OrNull(
      KeyWithSecret,
      'Its first key of scope `admin`, with its secret, this once; null where it has one already or no API access.',
    ),
  },
  { $id: 'AccountWithKey', description: 'An account, with its new key, if one was issued.' },
)

export interface AccountFacts {
  account: AccountState
  /** As it is for this account; null if it is not configured. */
  plan: Plan | null
  /** Of the keys that are not revoked. */
  environments: readonly string[]
  maxMessageBytes: number
}

/** An account, with the key that was issued to it, if one was. */
export interface AccountFactsWithKey extends AccountFacts {
  key: NewKey | null
}

/** An account as the contract has it. */
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
