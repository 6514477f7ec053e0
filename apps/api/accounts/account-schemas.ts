import Type from 'typebox'
import { perLimit } from '#libs/domain/account/quota.js'
import { list, named, object, text, type ValuesOf } from '#libs/domain/event-sourcing/declare.js'
import {
  Count,
  IdOf,
  OneOf,
  orNull,
  OrNull,
  resource,
  time,
  type ResourceJson,
} from '#libs/runtime/resource.js'
import { KeyWithSecret } from '../keys/key-schemas.js'

export const SIGN_INS = ['any', 'provider'] as const

const limits = object(
  {
    requestsPerMinute: Count(
      'The sustained rate of each key. In addition, a burst of half as many every ten minutes.',
    ),
    accountRequestsPerMinute: Count(
      'The rate of all keys, sessions of the console and inbox tokens of the account together.',
    ),
    retention: Type.String({ pattern: '^\\d+[mhdw]$', description: 'The maximum lifetime of an inbox.' }),
    maxMessageBytes: Count('The maximum size of a mail.'),
    maxMessages: Count('The maximum number of messages in one inbox.'),
    ...perLimit(({ unit }) => Count(`The quota of ${unit}.`)),
  },
  { $id: 'Limits', description: 'The limits of an account.' },
)

const account = {
  id: IdOf('acc', 'The id of the account.'),
  name: OrNull(Type.String(), 'For people; null once erased.'),
  plan: Type.String({ description: 'The name of its plan.' }),
  limits: orNull(limits, 'Null if its plan is no longer configured. The account then has no API access.'),
  environments: list(text, { description: 'The environments of its active keys.' }),
  signIn: OneOf(SIGN_INS, '`provider`: people can sign in to the console only with an identity provider.'),
  state: OneOf(
    ['active', 'suspended', 'closed'],
    'A suspended or closed account is refused all requests, and gets no mail.',
  ),
  suspendedAt: orNull(time(''), 'When it was suspended, or closed; null if it is active.'),
  closedAt: orNull(time(''), 'When it was closed; null if it is not.'),
  erasedAt: orNull(time(''), 'When all of the closed account had been erased; null before that.'),
  openedAt: named('created_at', time('When it was opened.')),
}

const example = {
  id: 'acc_01jd6axq2ve9r5t1y3n7m4k8c6',
  name: 'Example Ltd',
  plan: 'pro',
  limits: {
    requests_per_minute: 1000,
    account_requests_per_minute: 20_000,
    retention: '30d',
    max_message_bytes: 26_214_400,
    max_messages: 100_000,
    max_inboxes: 200_000,
    max_inboxes_per_day: 2_000_000,
    max_messages_per_day: 10_000_000,
    max_stored_bytes: 34_359_738_368,
    max_webhooks: 10_000,
    max_domains: 1_000,
    max_members: 250,
  },
  environments: ['production', 'staging'],
  sign_in: 'any',
  state: 'active',
  suspended_at: null,
  closed_at: null,
  erased_at: null,
  created_at: '2026-11-20T08:00:00.000Z',
}

export type AccountValues = ValuesOf<typeof account>

export const { schema: Account, json: accountJson } = resource(
  'Account',
  { description: 'The owner of keys and inboxes, with its limits.', examples: [example] },
  account,
)

/** An account in the answers that open it or change its plan. */
export const { schema: AccountWithKey, json: accountWithKeyJson } = resource(
  'AccountWithKey',
  { description: 'An account, with its new key, if one was issued.' },
  {
    ...account,
    key: OrNull(
      Type.Unsafe<ResourceJson>(KeyWithSecret),
      'Its first key with the scope `admin`. The secret is only in this answer. Null if the account already has such a key, or no API access.',
    ),
  },
)
