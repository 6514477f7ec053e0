import * as kind from './setting.js'

/** Where Mayfly is reached, over HTTP and SMTP, and by which names. */
export const REACH_SETTINGS = {
  httpHost: kind.text('MAYFLY_HTTP_HOST', { default: '127.0.0.1', help: 'Address the HTTP API listens on.' }),
  httpPort: kind.port('MAYFLY_HTTP_PORT', {
    default: 3000,
    help: 'Port of the HTTP API; 0 takes a free one.',
  }),
  httpMaxConnections: kind.wholeNumber(
    'MAYFLY_HTTP_MAX_CONNECTIONS',
    { least: 1, most: 1_000_000 },
    {
      default: 10_000,
      help: 'HTTP connections open at once, shared by remote address when all are taken. More are closed without an answer.',
    },
  ),
  httpRequestTimeoutMs: kind.wholeNumber(
    'MAYFLY_HTTP_REQUEST_TIMEOUT_MS',
    { least: 100, most: 3_600_000 },
    {
      default: 60_000,
      help: 'Longest time to receive a request, in milliseconds. Its headers must arrive within 15 s.',
    },
  ),
  corsOrigins: kind.optionalList(
    'MAYFLY_CORS_ORIGINS',
    'Origins whose pages may use the API from a browser, such as https://app.example, separated by commas, or * for ' +
      'any; none if unset.',
    /^(\*|https?:\/\/[^\s,/?#@]+)$/i,
    'must be origins such as https://app.example, without a path, with commas between, or *',
  ),
  smtpHost: kind.text('MAYFLY_SMTP_HOST', {
    default: '127.0.0.1',
    help: 'Address the SMTP edge listens on.',
  }),
  smtpPort: kind.port('MAYFLY_SMTP_PORT', {
    default: 2525,
    help: 'Port of the SMTP edge; 0 takes a free one.',
  }),
  metricsPort: kind.optionalPort(
    'MAYFLY_METRICS_PORT',
    'Serves /metrics on a port of its own instead of on the HTTP API.',
  ),
  publicUrl: kind.optionalUrl(
    'MAYFLY_PUBLIC_URL',
    'Base of links in problems and docs; the HTTP address if unset.',
  ),
  mailDomain: kind.matching(
    'MAYFLY_MAIL_DOMAIN',
    /^(?=.{1,200}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i,
    'must be a domain name',
    { default: 'mayfly.test', help: 'Domain of generated addresses.' },
  ),
} as const
