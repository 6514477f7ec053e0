import type { TObject } from 'typebox'
import { kindOf, QUOTAS } from '#libs/domain/account/quota.js'
import { object, text } from '#libs/domain/event-sourcing/declare.js'
import { Count, IdOf, OneOf, OrNull, orNull, time } from '#libs/runtime/resource.js'

export const QUOTA = object(
  {
    name: OneOf(QUOTAS, QUOTAS.map((quota) => `\`${quota}\`: ${kindOf(quota).unit}.`).join(' ')),
    environment: orNull(text, 'The environment whose inboxes count; null if not only one does.'),
    keyId: OrNull(IdOf('key', 'The id of a key.'), 'The key whose inboxes count; null if not only one does.'),
    limit: Count('The maximum.'),
    used: Count('How much is used now.'),
    resetsAt: orNull(time(''), 'When a daily quota begins again; null for others.'),
  },
  {
    $id: 'Quota',
    description: 'What the account may use, and uses, of something: in all, in an environment, or by a key.',
    examples: [{ name: 'inboxes', environment: null, key_id: null, limit: 500, used: 12, resets_at: null }],
  },
)

export const QUOTA_PROPERTIES = (QUOTA.schema as TObject).properties
