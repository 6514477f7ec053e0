import * as kind from './setting.js'

/** Where webhooks may be sent to, and for how long it may take. */
export const WEBHOOK_SETTINGS = {
  webhookAllowPrivate: kind.yesOrNo('MAYFLY_WEBHOOK_ALLOW_PRIVATE', {
    default: false,
    help:
      'Whether webhooks may be sent to any address and port: private ones, loopback and what clouds serve credentials ' +
      'from among them. For one machine or one trusted network.',
  }),
  webhookPorts: kind.portRanges('MAYFLY_WEBHOOK_PORTS', {
    default: '80,443,1024-65535',
    help: 'Ports and ranges of them that webhooks may be sent to.',
  }),
  webhookTimeoutMs: kind.wholeNumber(
    'MAYFLY_WEBHOOK_TIMEOUT_MS',
    { least: 100, most: 60_000 },
    { default: 15_000, help: 'Longest time for one attempt to deliver a webhook, in milliseconds.' },
  ),
} as const
