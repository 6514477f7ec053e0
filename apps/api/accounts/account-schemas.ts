import Type from 'typebox'
import { named, object, plain } from '#libs/domain/event-sourcing/declare.js'
import type { Account as AccountState } from '#libs/domain/account/account.js'
import type { Plan } from '#libs/domain/account/access.js'
import { Count, IdOf, orNull, OrNull, resource, time, type ResourceJson } from '#libs/runtime/resource.js'
import { KeyWithSecret, newKeyJson, type NewKey } from '../keys/key-schemas.js'

const limits = object(
  {
    requestsPerMinute: plain(
      Count('The sustained rate of each key. In addition, a burst of half as many every ten minutes.'),
    ),
    retention: plain(
      Type.String({ pattern: '^\\d+[mhdw]$', description: 'The maximum lifetime of an inbox.' }),
    ),
    maxMessageBytes: plain(Count('The maximum size of a mail.')),
    maxMessages: plain(Count('The maximum number of messages in one inbox.')),
  },
  { $id: 'Limits', description: 'The limits of an account.' },
)

const account = {
  id: plain(IdOf('acc', 'The id of the account.')),
  name: plain(Type.String({ description: 'A name to show to people.' })),
  plan: plain(Type.String({ description: 'The name of its plan.' })),
  limits: orNull(limits, 'Null if its plan is no longer configured. The account then has no API access.'),
  environments: plain(
    Type.Unsafe<readonly string[]>(
      Type.Array(Type.String(), {
        description: 'The environments of its keys that are not revoked.',
      }),
    ),
  ),
  openedAt: named('created_at', time('When it was opened.')),
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

const shown = resource(
  'Account',
  { description: 'The owner of keys and inboxes, with its limits.', examples: [example] },
  account,
)
export const Account = shown.schema

/** An account in the answers that open it or change its plan. */
const changed = resource(
  'AccountWithKey',
  { description: 'An account, with its new key, if one was issued.' },
  {
    ...account,
    key: plain(
      OrNull(
        Type.Unsafe<ResourceJson>(KeyWithSecret),
        'Its first key with the scope `admin`. The secret is only in this answer. Null if the account already has such a key, or no API access.',
      ),
    ),
  },
)
export const AccountWithKey = changed.schema

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

function valuesOf({ account, plan, environments, maxMessageBytes }: AccountFacts) {
  const limits = plan && { ...plan, retention: plan.retention.text, maxMessageBytes }
  return { ...account, limits, environments }
}

/** An account as JSON. */
export function accountJson(facts: AccountFacts) {
  return shown.json(valuesOf(facts))
}

export function accountWithKeyJson(facts: AccountFactsWithKey) {
  return changed.json({ ...valuesOf(facts), key: facts.key && newKeyJson(facts.key) })
}
