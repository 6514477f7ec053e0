import { BlockList, isIPv4, isIPv6 } from 'node:net'
import * as kind from './setting.js'

const MIB = 1024 * 1024

/** What SMTP clients may do and use (docs/smtp.md), and how mail is verified. */
export const SMTP_SETTINGS = {
  smtpTls: kind.oneOf('MAYFLY_SMTP_TLS', ['off', 'self-signed', 'files'], {
    default: 'off',
    help:
      'STARTTLS: off; self-signed, with a certificate from a local authority that Mayfly makes in the data folder; ' +
      'files, with MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY.',
  }),
  smtpTlsCert: kind.optionalText(
    'MAYFLY_SMTP_TLS_CERT',
    'PEM file of the certificate, followed by those of its intermediate authorities.',
  ),
  smtpTlsKey: kind.optionalText(
    'MAYFLY_SMTP_TLS_KEY',
    'PEM file of the private key that belongs to the certificate.',
  ),
  smtpsPort: kind.optionalPort(
    'MAYFLY_SMTPS_PORT',
    'A second SMTP port, for implicit TLS (RFC 8314), with the same certificate; 0 takes a free one.',
  ),
  smtpRequireTls: kind.yesOrNo('MAYFLY_SMTP_REQUIRE_TLS', {
    default: false,
    help: 'Whether mail is accepted over TLS only. Without TLS, commands are answered 530.',
  }),
  smtpAuth: kind.optionalOneOf(
    'MAYFLY_SMTP_AUTH',
    ['any', 'key', 'off'],
    'AUTH PLAIN and LOGIN: any accepts and ignores every user and password; key expects an API key as the password, ' +
      'if a client authenticates at all; off. Default: any if MAYFLY_SMTP_HOST is a loopback address, else off.',
  ),
  unknownRecipients: kind.oneOf('MAYFLY_UNKNOWN_RECIPIENTS', ['reject', 'discard'], {
    default: 'reject',
    help:
      'Recipients of domains other than MAYFLY_MAIL_DOMAIN: reject answers 550; discard accepts them and drops their ' +
      'mail. Unknown recipients of MAYFLY_MAIL_DOMAIN are always rejected.',
  }),
  discardFrom: kind.optionalList(
    'MAYFLY_DISCARD_FROM',
    'Addresses or networks (10.0.0.7, 10.0.0.0/8, fd00::/8), separated by commas, whose mail to other domains is ' +
      'discarded, besides loopback. Required with discard if MAYFLY_SMTP_HOST is not a loopback address.',
    isNetwork,
    'must be IP addresses or networks such as 10.0.0.0/8, separated by commas',
  ),
  smtpMaxConnections: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_CONNECTIONS',
    { least: 1, most: 100_000 },
    { default: 2_000, help: 'SMTP connections at once, in all.' },
  ),
  smtpMaxConnectionsPerAddress: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_CONNECTIONS_PER_ADDRESS',
    { least: 1, most: 100_000 },
    {
      default: 500,
      help: 'SMTP connections at once from one remote address; of IPv6 the first 64 bits count, here and below.',
    },
  ),
  smtpMaxConnectionsPerMinute: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_CONNECTIONS_PER_MINUTE',
    { least: 0, most: 10_000_000 },
    { default: 0, help: 'SMTP connections that one remote address may begin in a minute; 0 for any number.' },
  ),
  smtpProxyFrom: kind.optionalList(
    'MAYFLY_SMTP_PROXY_FROM',
    'Balancers, as addresses or networks (10.0.0.7, 10.0.0.0/8, fd00::/8) with commas between, whose connections must ' +
      'begin with a header of the PROXY protocol (version 1 or 2), and are from whom it says; none where unset.',
    isNetwork,
    'must be IP addresses or networks such as 10.0.0.0/8, with commas between',
  ),
  smtpMaxRecipients: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_RECIPIENTS',
    { least: 1, most: 10_000 },
    { default: 1_000, help: 'Recipients of one mail; RFC 5321 asks for at least 100.' },
  ),
  smtpMemoryBytes: kind.wholeNumber(
    'MAYFLY_SMTP_MEMORY_BYTES',
    { least: MIB, most: 1024 * 1024 * MIB },
    { default: 256 * MIB, help: 'Bytes of mail under way held in memory, past which SMTP answers 451.' },
  ),
  smtpMemoryPercentPerAddress: kind.wholeNumber(
    'MAYFLY_SMTP_MEMORY_PERCENT_PER_ADDRESS',
    { least: 1, most: 100 },
    {
      default: 75,
      help: 'What mail from one remote address may take of that memory, in percent; a largest mail has room in any case.',
    },
  ),
  smtpCommandTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_COMMAND_TIMEOUT_MS',
    { least: 100, most: 3_600_000 },
    { default: 300_000, help: 'Longest wait for a command or for more of a mail, in milliseconds.' },
  ),
  smtpDataTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_DATA_TIMEOUT_MS',
    { least: 1_000, most: 3_600_000 },
    { default: 600_000, help: 'Longest time for one mail from DATA to its answer, in milliseconds.' },
  ),
  smtpHandshakeTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_HANDSHAKE_TIMEOUT_MS',
    { least: 100, most: 3_600_000 },
    {
      default: 30_000,
      help: 'Longest time for the TLS handshake of a session, and for the PROXY header of a balancer, in milliseconds.',
    },
  ),
  smtpSessionTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_SESSION_TIMEOUT_MS',
    { least: 1_000, most: 86_400_000 },
    {
      default: 1_800_000,
      help: 'Longest time of a session without an accepted mail, whatever commands come, in milliseconds.',
    },
  ),
  smtpCrowdedTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_CROWDED_TIMEOUT_MS',
    { least: 100, most: 3_600_000 },
    {
      default: 10_000,
      help: 'Longest wait for a command of who has delivered nothing yet, while four fifths of the connections are taken.',
    },
  ),
  smtpMaxErrors: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_ERRORS',
    { least: 1, most: 100_000 },
    {
      default: 20,
      help: 'Faulty commands of a session since its start or last accepted mail; the last one cuts it.',
    },
  ),
  smtpMaxIdleCommands: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_IDLE_COMMANDS',
    { least: 10, most: 1_000_000 },
    {
      default: 1_000,
      help: 'Commands beside new recipients and DATA, counted in the same way, past which a session is cut.',
    },
  ),
  smtpMaxUnknownRecipients: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_UNKNOWN_RECIPIENTS',
    { least: 1, most: 1_000_000 },
    {
      default: 200,
      help: 'Unknown recipients of a session, less the known ones, past which it is cut; past a tenth answers are held back.',
    },
  ),
  smtpMaxUnknownRecipientsPerAddress: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_UNKNOWN_RECIPIENTS_PER_ADDRESS',
    { least: 1, most: 100_000_000 },
    {
      default: 2_000,
      help: 'The same of one remote address in ten minutes, past which each of its sessions has a tenth, held back at once.',
    },
  ),
  smtpUnknownRecipientDelayMs: kind.wholeNumber(
    'MAYFLY_SMTP_UNKNOWN_RECIPIENT_DELAY_MS',
    { least: 0, most: 60_000 },
    {
      default: 2_000,
      help: 'Longest time by which the answer to an unknown recipient is held back; 0 for none.',
    },
  ),
  mailAuthentication: kind.yesOrNo('MAYFLY_MAIL_AUTHENTICATION', {
    default: false,
    help: 'Whether SPF, DKIM, DMARC and ARC of each mail are judged, which asks DNS before the mail is accepted.',
  }),
  dnsServers: kind.optionalList(
    'MAYFLY_DNS_SERVERS',
    'DNS servers for that and for the endpoints of webhooks, 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53, with ' +
      "commas between; the system's where unset.",
    /^(\d{1,3}(\.\d{1,3}){3}(:\d{1,5})?|[0-9a-f:]+|\[[0-9a-f:]+\](:\d{1,5})?)$/i,
    'must be IP addresses, each with :port or without, with commas between',
  ),
} as const

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** Whether a host name or IP address is this machine's loopback. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  return isIPv4(host) ? LOOPBACK.check(host, 'ipv4') : isIPv6(host) && LOOPBACK.check(host, 'ipv6')
}

/** An address, or one with the length of its network's prefix. */
function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const most = isIPv4(address) ? 32 : isIPv6(address) && !address.includes('%') ? 128 : null
  if (most === null || more.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= most)
}
