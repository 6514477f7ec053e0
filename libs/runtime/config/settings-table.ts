import { DISTRIBUTED_SETTINGS } from './distributed-settings.js'
import { MEMORY_SETTINGS } from './memory-settings.js'
import * as kind from './setting.js'
import type { Setting } from './setting.js'
import { SMTP_SETTINGS } from './smtp-settings.js'

const MIB = 1024 * 1024

const DOMAIN = {
  accepts: /^(?=.{1,200}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i,
  expectation: 'must be a domain name',
}

/** Every setting, in the order of the table in docs/operating.md. */
export const SETTINGS = kind.named('MAYFLY_', {
  // Addresses and names of the HTTP API and of SMTP.
  httpHost: kind.text('Address the HTTP API listens on.', { default: '127.0.0.1' }),
  httpPort: kind.port('Port of the HTTP API; 0 takes a free one.', { default: 3000 }),
  httpMaxConnections: kind.wholeNumber(
    'HTTP connections open at once, shared by remote address when all are taken. More are closed without an answer.',
    { default: 10_000, min: 1, max: 1_000_000 },
  ),
  httpRequestTimeoutMs: kind.wholeNumber(
    'Longest time to receive a request, in milliseconds. Its headers must arrive within 15 s.',
    { default: 60_000, min: 100, max: 3_600_000 },
  ),
  corsOrigins: kind.list(
    'Origins whose pages may use the API from a browser, such as https://app.example, separated by commas, or * for ' +
      'any; none if unset.',
    {
      accepts: /^(\*|https?:\/\/[^\s,/?#@]+)$/i,
      expectation: 'must be origins such as https://app.example, without a path, separated by commas, or *',
    },
  ),
  mailpitApi: kind.yesOrNo(
    "Whether the HTTP API also answers the requests of Mailpit's API that read and delete mail, under /api/v1 " +
      '(docs/mailpit.md).',
    { default: false },
  ),
  servesMcp: {
    variable: 'MAYFLY_MCP',
    ...kind.yesOrNo(
      'Whether the HTTP API also serves the Model Context Protocol, at /mcp ([docs](mcp.md)).',
      { default: false },
    ),
  },
  smtpHost: kind.text('Address the SMTP edge listens on.', { default: '127.0.0.1' }),
  smtpPort: kind.port('Port of the SMTP edge; 0 takes a free one.', { default: 2525 }),
  metricsPort: kind.port('Serves /metrics on a separate port instead of on the HTTP API.'),
  publicUrl: kind.url(
    'Base of links, and the only address of the web console; the HTTP address if unset. Part of the name of audit logs (docs/audit.md).',
  ),
  mailDomain: kind.text('Domain of generated addresses.', {
    default: 'mayfly.test',
    ...DOMAIN,
  }),
  mxHost: kind.text(
    'Host that receives the mail, for the MX records of own domains (docs/domains.md); MAYFLY_MAIL_DOMAIN if unset.',
    DOMAIN,
  ),
  mailRelay: kind.text(
    'SMTP server that sends the links of invitations (docs/teams.md): smtp://[user:password@]host[:port], or smtps:// for ' +
      'implicit TLS. If unset, only the answer has the link.',
    {
      accepts: /^smtps?:\/\/([^\s\/@]{1,200}@)?[^\s\/@:]{1,200}(:\d{1,5})?\/?$/i,
      expectation: 'must be a URL such as smtp://user:password@mail.example.com:587',
    },
  ),
  mailFrom: kind.text('Sender of invitations; no-reply@ MAYFLY_MAIL_DOMAIN if unset.', {
    accepts: /^[^\s@<>",;:]{1,64}@[^\s@<>",;:]{1,200}$/,
    expectation: 'must be a mail address',
  }),
  trustedProxies: kind.wholeNumber(
    'How many reverse proxies in front of the HTTP API add the address of their client to X-Forwarded-For. Limits per ' +
      'remote address of requests without a key count by the address that the outermost of them gives, and activity has it.',
    { default: 0, min: 0, max: 16 },
  ),

  // The public web inbox (docs/public-inbox.md).
  publicInbox: kind.yesOrNo(
    'Whether anyone may get an inbox without an account, at / and with POST /public/inboxes.',
    { default: false },
  ),
  publicInboxDomain: kind.text(
    'Domain of the addresses of public inboxes; MAYFLY_MAIL_DOMAIN if unset. Must be the same for the API and SMTP.',
    DOMAIN,
  ),
  publicInboxesPerAddress: kind.wholeNumber('Public inboxes that one remote address may create per hour.', {
    default: 20,
    min: 1,
    max: 1_000_000,
  }),
  publicInboxesPerHour: kind.wholeNumber(
    'Public inboxes that all remote addresses together may create per hour.',
    { default: 1_000, min: 1, max: 1_000_000_000 },
  ),
  abuseContact: kind.text('Mail address or URL, shown on the public page, to report abuse to.', {
    accepts: /^([^\s@<>"]{1,64}@[^\s@<>"]{1,200}|https?:\/\/[^\s<>"]{1,300})$/i,
    expectation: 'must be a mail address or an http or https URL',
  }),

  // Stored data, keys and plans.
  dataDir: kind.text("Folder of the embedded engine's files.", { default: './data' }),
  masterKey: kind.text(
    'Encrypts the keys of inboxes, accounts and members, and the secrets of webhooks: 32 bytes in base64, or several separated by commas, the current ' +
      'one first. If unset, the embedded engine makes one at the first start and keeps it in the data folder.',
    {
      accepts: /^[A-Za-z0-9+/]{43}=(\s*,\s*[A-Za-z0-9+/]{43}=)*$/,
      expectation: 'must be 32 bytes in base64, or several separated by commas',
    },
  ),
  bootstrapApiKey: kind.text(
    'First API key, with every scope, for the environment development: 20 to 200 visible ASCII characters. ' +
      'If unset, the first start makes one and prints it. A later start with another value adds that key to the first ' +
      'account; the earlier key stays valid until it is revoked.',
    {
      accepts: /^[\x21-\x7e]{20,200}$/,
      expectation: 'must be 20 to 200 visible ASCII characters',
    },
  ),
  countsUsage: {
    variable: 'MAYFLY_COUNT_USAGE',
    ...kind.yesOrNo(
      'Whether usage is counted in ClickHouse, which the embedded engine runs in its own process. Must be the same in ' +
        'every process of the distributed engine. If counting is turned on later, it begins with the oldest event on the ' +
        'log.',
      { default: true },
    ),
  },
  plansFile: {
    variable: 'MAYFLY_PLANS',
    ...kind.text(
      'JSON file of the plans that accounts may have; free, starter, pro and enterprise if unset.',
    ),
  },
  providersFile: {
    variable: 'MAYFLY_IDENTITY_PROVIDERS',
    ...kind.text(
      'JSON file of the identity providers that members may sign in with (docs/teams.md); none if unset.',
    ),
  },
  auditDeliveries: kind.yesOrNo(
    'Whether audit logs have leaves for the deliveries of webhooks too (docs/audit.md). If it is turned on later, it begins with the oldest ones on the log.',
    { default: false },
  ),
  auditWitnessPolicy: kind.text(
    'File with the witnesses that cosign the checkpoints of audit logs, and how many must have (C2SP tlog-policy, docs/audit.md). Must be the same for `api` and `lifecycle`.',
  ),
  auditLastCheckpoint: kind.text(
    'File with the last checkpoints of audit logs, kept outside of Mayfly. A log that contradicts its checkpoint, such as one from an older backup, is not signed (docs/audit.md).',
  ),

  ...DISTRIBUTED_SETTINGS,
  ...MEMORY_SETTINGS,

  // Limits of received mail and of parsing (docs/decisions/0017-fair-parsing.md).
  maxMessageBytes: kind.wholeNumber('Largest mail accepted, in bytes.', {
    default: 25 * MIB,
    min: 1024,
    max: 256 * MIB,
  }),
  maxBacklog: kind.wholeNumber('Accepted mails that may wait to be parsed. With more, SMTP answers 451.', {
    default: 100_000,
    min: 1,
    max: 1_000_000_000,
  }),
  parseThreads: kind.wholeNumber('Threads that parse mail. As many as there are cores is best.', {
    default: 2,
    min: 1,
    max: 64,
  }),
  parseTimeoutMs: kind.wholeNumber(
    'Longest time to parse one mail, in milliseconds, whatever the budgets below leave.',
    { default: 10_000, min: 100, max: 600_000 },
  ),
  parseSlowTimeoutMs: {
    variable: 'MAYFLY_PARSE_PATIENCE_MS',
    ...kind.wholeNumber(
      'Shorter limit in milliseconds, plus 40 ms and 40 ms per MiB, for a mail that takes more than the usual CPU ' +
        'time (20 ms, and 20 ms per MiB). Beyond it only the header is parsed. It applies to mail of the last minute, ' +
        'while more than one account receives mail.',
      { default: 500, min: 100, max: 600_000 },
    ),
  },
  parseInboxBudgetMs: kind.wholeNumber(
    'CPU milliseconds beyond the usual that parsing the mail of one inbox may take per minute, while more than one ' +
      'account receives mail. Beyond it only headers are parsed.',
    { default: 250, min: 0, max: 60_000 },
  ),
  parseAccountBudgetMs: kind.wholeNumber(
    'The same for all inboxes of an account. Beyond it only the headers of mails above 64 KiB are parsed.',
    { default: 500, min: 0, max: 600_000 },
  ),
  parseMemoryMib: kind.wholeNumber(
    'Largest heap of one parsing thread, in MiB. Below 2048 it spends much more time in garbage collection.',
    { default: 2048, min: 64, max: 16_384 },
  ),

  // Limits of clients that read mail.
  maxStreams: kind.wholeNumber(
    'Event streams open at once, shared fairly if that is not enough. More are answered 503.',
    { default: 10_000, min: 0, max: 1_000_000 },
  ),
  streamStallMs: kind.wholeNumber(
    'Time in milliseconds in which a client must read something of its stream, and 1 MiB of a large answer, or is disconnected.',
    { default: 30_000, min: 1_000, max: 3_600_000 },
  ),
  maxWaits: kind.wholeNumber(
    'Requests that may wait for a message at once, shared fairly if that is not enough. More are answered 503.',
    { default: 10_000, min: 1, max: 1_000_000 },
  ),
  openedMailBytes: kind.wholeNumber(
    'Memory in which the API caches mail that was read in the last minute, in bytes; 0 for no cache.',
    { default: 64 * MIB, min: 0, max: 64 * 1024 * MIB },
  ),

  ...SMTP_SETTINGS,

  // Webhooks.
  webhookAllowPrivate: kind.yesOrNo(
    'Whether webhooks may be sent to any address and port, and links there be checked, including private networks, ' +
      'loopback and the addresses from which clouds serve credentials. For one machine or one trusted network.',
    { default: false },
  ),
  webhookPorts: kind.portRanges(
    'Ports and port ranges that webhooks, and requests for links, may be sent to.',
    {
      default: '80,443,1024-65535',
    },
  ),
  webhookTimeoutMs: kind.wholeNumber('Longest time for one delivery attempt of a webhook, in milliseconds.', {
    default: 15_000,
    min: 100,
    max: 60_000,
  }),
  webhookConcurrency: kind.wholeNumber('Delivery attempts at once, in one process.', {
    default: 200,
    min: 1,
    max: 10_000,
  }),
  webhookEndpointConcurrency: kind.wholeNumber(
    'The same for one webhook, so that a slow endpoint leaves capacity to others.',
    { default: 10, min: 1, max: 10_000 },
  ),
  webhookReplayRate: kind.wholeNumber(
    'Deliveries per second that all replays together may request, in one process.',
    { default: 200, min: 1, max: 100_000 },
  ),

  logLevel: {
    variable: 'LOG_LEVEL',
    ...kind.oneOf('Lowest level that is logged: fatal, error, warn, info, debug, trace or silent.', {
      choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
      default: 'info',
    }),
  },
})

/** The table of all settings in Markdown, in the order of the code. */
export function renderSettings(): string {
  const rows = Object.values<Setting<unknown>>(SETTINGS).map(
    ({ variable, defaultText, help }) => `| ${variable} | ${defaultText ?? 'unset'} | ${help} |`,
  )
  return ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n') + '\n'
}
