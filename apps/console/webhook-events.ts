// Written by `npm run generate`.

export const WEBHOOK_EVENTS = [
  'message.received',
  'message.deleted',
  'inbox.expired',
  'inbox.deleted',
  'domain.verified',
  'domain.lapsed',
  'key.expiring',
  'quota.reached',
] as const
