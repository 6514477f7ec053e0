import * as kind from './setting.js'

/** What is sent to webhooks, where to and how. */
export const WEBHOOK_SETTINGS = {
  webhookAllowPrivate: kind.yesOrNo('MAYFLY_WEBHOOK_ALLOW_PRIVATE', {
    default: false,
    help:
      'Whether webhooks may be sent to any address and port, including private networks, loopback and the addresses ' +
      'from which clouds serve credentials. For one machine or one trusted network.',
  }),
  webhookPorts: kind.portRanges('MAYFLY_WEBHOOK_PORTS', {
    default: '80,443,1024-65535',
    help: 'Ports and port ranges that webhooks may be sent to.',
  }),
  webhookTimeoutMs: kind.wholeNumber(
    'MAYFLY_WEBHOOK_TIMEOUT_MS',
    { least: 100, most: 60_000 },
    { default: 15_000, help: 'Longest time for one delivery attempt of a webhook, in milliseconds.' },
  ),
  webhookConcurrency: kind.wholeNumber(
    'MAYFLY_WEBHOOK_CONCURRENCY',
    { least: 1, most: 10_000 },
    { default: 200, help: 'Delivery attempts at once, in one process.' },
  ),
  webhookEndpointConcurrency: kind.wholeNumber(
    'MAYFLY_WEBHOOK_ENDPOINT_CONCURRENCY',
    { least: 1, most: 10_000 },
    { default: 10, help: 'The same for one webhook, so that a slow endpoint leaves capacity to others.' },
  ),
  webhookReplayRate: kind.wholeNumber(
    'MAYFLY_WEBHOOK_REPLAY_RATE',
    { least: 1, most: 100_000 },
    {
      default: 200,
      help: 'Deliveries per second that all replays together may request, in one process.',
    },
  ),
} as const
