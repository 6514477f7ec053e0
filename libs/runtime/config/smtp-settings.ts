import { isIP, isIPv4, isIPv6 } from 'node:net'
import { Networks } from '#libs/runtime/remote-address.js'
import * as kind from './setting.js'

const MIB = 1024 * 1024

const NETWORKS = {
  accepts: isNetwork,
  expectation: 'must be IP addresses or networks such as 10.0.0.0/8, separated by commas',
}

/** Settings of SMTP (docs/smtp.md), and of the authentication of mail. */
export const SMTP_SETTINGS = kind.named('MAYFLY_', {
  smtpTls: kind.oneOf(
    'STARTTLS: off; self-signed, with a certificate from a local authority that Mayfly makes in the data folder; ' +
      'files, with MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY.',
    { choices: ['off', 'self-signed', 'files'], default: 'off' },
  ),
  smtpTlsCert: kind.text('PEM file of the certificate, followed by those of its intermediate authorities.'),
  smtpTlsKey: kind.text('PEM file of the private key that belongs to the certificate.'),
  smtpsPort: kind.port(
    'A second SMTP port, for implicit TLS (RFC 8314), with the same certificate; 0 takes a free one.',
  ),
  smtpRequireTls: kind.yesOrNo(
    'Whether mail is accepted over TLS only. Without TLS, commands are answered 530.',
    { default: false },
  ),
  smtpAuth: kind.oneOf(
    'AUTH: any accepts and ignores every user, password and OAuth token; key expects an API key as the password, ' +
      'if a client authenticates at all; off. Default: any if MAYFLY_SMTP_HOST is a loopback address, else off.',
    { choices: ['any', 'key', 'off'] },
  ),
  unknownRecipients: kind.oneOf(
    'Recipients of domains other than MAYFLY_MAIL_DOMAIN: create makes an inbox for each address, in the environment ' +
      'development of the first account; discard accepts them and drops their mail; reject answers 550. Unknown ' +
      'recipients of MAYFLY_MAIL_DOMAIN are always rejected. Default: create if MAYFLY_SMTP_HOST is a loopback address ' +
      'and MAYFLY_ACCEPT_DOMAINS is unset, else reject.',
    { choices: ['create', 'discard', 'reject'] },
  ),
  acceptDomains: kind.list(
    'Other domains whose addresses belong to the first account, separated by commas: staging.example.com, or ' +
      '*.example.com for all subdomains. Mail to any of their addresses makes an inbox, from whatever address it is sent.',
    {
      accepts: /^(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/i,
      expectation: 'must be domains such as staging.example.com or *.example.com, separated by commas',
    },
  ),
  autoInboxesPerMinute: kind.wholeNumber(
    'Inboxes that mail of one remote address may make in a minute. Further mail to unknown addresses is answered 452.',
    { default: 2_000, min: 1, max: 1_000_000 },
  ),
  autoInboxesPerDay: kind.wholeNumber('Inboxes that mail may make in a day in one account.', {
    default: 20_000,
    min: 1,
    max: 100_000_000,
  }),
  discardFrom: kind.list(
    'Addresses or networks (10.0.0.7, 10.0.0.0/8, fd00::/8), separated by commas, besides loopback, to whose mail ' +
      'create or discard applies. Required with either if MAYFLY_SMTP_HOST is not a loopback address.',
    NETWORKS,
  ),
  smtpMaxConnections: kind.wholeNumber(
    'SMTP connections open at once, shared fairly by remote address if that is not enough.',
    { default: 2_000, min: 1, max: 100_000 },
  ),
  smtpMaxConnectionsPerAddress: kind.wholeNumber(
    'SMTP connections open at once from one remote address. Here and below, IPv6 addresses with the same first 64 bits are one address.',
    { default: 500, min: 1, max: 100_000 },
  ),
  smtpMaxConnectionsPerMinute: kind.wholeNumber(
    'SMTP connections that one remote address may open per minute; 0 for any number.',
    { default: 0, min: 0, max: 10_000_000 },
  ),
  smtpProxyFrom: kind.list(
    'Load balancers: addresses or networks (10.0.0.7, 10.0.0.0/8, fd00::/8), separated by commas. Their connections ' +
      'must begin with a PROXY protocol header (version 1 or 2), which names the real client; none if unset.',
    NETWORKS,
  ),
  smtpMaxRecipients: kind.wholeNumber('Recipients of one mail; RFC 5321 requires at least 100.', {
    default: 1_000,
    min: 1,
    max: 10_000,
  }),
  smtpMemoryBytes: kind.wholeNumber(
    'Memory for mail that is being received, in bytes, shared fairly by remote address. When it is full, SMTP answers 451.',
    { default: 256 * MIB, min: MIB, max: 1024 * 1024 * MIB },
  ),
  smtpMemoryPercentPerAddress: kind.wholeNumber(
    'Share of that memory that one remote address may use, in percent; always enough for one mail of the largest size.',
    { default: 75, min: 1, max: 100 },
  ),
  smtpCommandTimeoutMs: kind.wholeNumber(
    'Longest wait for the next command, or for more of a mail, in milliseconds.',
    { default: 300_000, min: 100, max: 3_600_000 },
  ),
  smtpDataTimeoutMs: kind.wholeNumber('Longest time for one mail, from DATA to its reply, in milliseconds.', {
    default: 600_000,
    min: 1_000,
    max: 3_600_000,
  }),
  smtpHandshakeTimeoutMs: kind.wholeNumber(
    'Longest time for a TLS handshake, and for the PROXY header of a balancer, in milliseconds.',
    { default: 30_000, min: 100, max: 3_600_000 },
  ),
  smtpSessionTimeoutMs: kind.wholeNumber(
    'Longest time that a session may last without an accepted mail, in milliseconds.',
    { default: 1_800_000, min: 1_000, max: 86_400_000 },
  ),
  smtpCrowdedTimeoutMs: kind.wholeNumber(
    'Longest time in milliseconds that a session may last without an accepted mail while 80 % of the connections are in use. The first mail that begins extends it by as much.',
    { default: 30_000, min: 100, max: 3_600_000 },
  ),
  smtpMaxErrors: kind.wholeNumber(
    'Faulty commands since the start of a session or its last accepted mail. The last one ends the session.',
    { default: 20, min: 1, max: 100_000 },
  ),
  smtpMaxIdleCommands: kind.wholeNumber(
    'Commands other than DATA and RCPT TO for a new recipient, since the start of a session or its last accepted mail. More end the session.',
    { default: 1_000, min: 10, max: 1_000_000 },
  ),
  smtpMaxUnknownRecipients: kind.wholeNumber(
    'Unknown recipients of a session, minus the known ones. More end the session; beyond a tenth, replies are delayed.',
    { default: 200, min: 1, max: 1_000_000 },
  ),
  smtpMaxUnknownRecipientsPerAddress: kind.wholeNumber(
    'The same for one remote address in ten minutes. Beyond it, each of its sessions may have a tenth, and every such reply is delayed.',
    { default: 2_000, min: 1, max: 100_000_000 },
  ),
  smtpUnknownRecipientDelayMs: kind.wholeNumber(
    'Longest delay of the reply to an unknown recipient, in milliseconds; 0 for none.',
    { default: 2_000, min: 0, max: 60_000 },
  ),
  mailAuthentication: kind.yesOrNo(
    'Whether SPF, DKIM, DMARC and ARC of each mail are verified, with DNS queries before the mail is accepted.',
    { default: false },
  ),
  dnsServers: kind.list(
    'DNS servers for that, for the records of own domains and for the endpoints of webhooks: 192.0.2.53, ' +
      "192.0.2.53:5353 or [2001:db8::53]:53, separated by commas; the system's if unset.",
    {
      accepts: /^(\d{1,3}(\.\d{1,3}){3}(:\d{1,5})?|[0-9a-f:]+|\[[0-9a-f:]+\](:\d{1,5})?)$/i,
      expectation: 'must be IP addresses, each with or without :port, separated by commas',
    },
  ),
})

const LOOPBACK = new Networks(['127.0.0.0/8', '::1'])

/** Whether a host name or IP address is a loopback address. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === 'localhost' || (isIP(host) !== 0 && LOOPBACK.has(host))
}

/** Whether a text is an IP address or a network in CIDR notation. */
function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const maxLength = isIPv4(address) ? 32 : isIPv6(address) && !address.includes('%') ? 128 : null
  if (maxLength === null || more.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= maxLength)
}
