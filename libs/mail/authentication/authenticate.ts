import { isIP } from 'node:net'
import { authenticate, type AuthenticateResult, type AuthStatus } from 'mailauth'
import { messageOf } from '#libs/runtime/errors.js'
import { cutToBytes } from '../limits.js'
import type { Authentication, AuthenticationResult, Envelope } from '../message.js'
import type { Resolve } from './mail-dns.js'
import { unverified } from './unverified.js'

/** The sender as the SMTP server knows it. */
export type Sender = Pick<Envelope, 'mailFrom' | 'helo' | 'remoteAddress'>

const MAX_TEXT_BYTES = 300

/**
 * Verifies the sender of a mail with SPF, DKIM, DMARC and ARC, strictly by the RFCs: a signature with rsa-sha1 has the
 * result `policy` (RFC 8301), and one over a body that was changed `fail`. Resolves when DNS has answered or timed
 * out. If the mail exceeds a limit, or mailauth fails, the result is `permerror`.
 */
export async function authenticateMail(
  raw: Buffer,
  { mailFrom, helo, remoteAddress }: Sender,
  resolver: Resolve,
): Promise<Authentication> {
  const verifiable = verifiableSource(raw)
  if ('reason' in verifiable) return unverified('permerror', verifiable.reason)
  try {
    const result = await authenticate(verifiable.source, {
      sender: mailFrom,
      helo,
      ...(isIP(remoteAddress) === 0 ? {} : { ip: remoteAddress }),
      mta: 'mayfly',
      strict: true,
      disableBimi: true,
      resolver,
    })
    return { spf: spfOf(result), dkim: dkimOf(result), dmarc: dmarcOf(result), ...arcOf(result) }
  } catch (error) {
    return unverified('permerror', textOf(messageOf(error)) ?? '')
  }
}

function spfOf({ spf }: AuthenticateResult): Authentication['spf'] {
  if (spf === false || isIP(spf['client-ip']) === 0) return null
  return { result: resultOf(spf.status), domain: textOf(spf.domain), detail: textOf(spf.status.comment) }
}

function dkimOf({ dkim }: AuthenticateResult): Authentication['dkim'] {
  // For a mail without signatures, mailauth returns one entry with the result `none`.
  const signatures = dkim.results.filter(({ status }) => status.result !== 'none')
  return signatures.map(({ status, signingDomain, selector, algo }) => ({
    result: resultOf(status),
    domain: textOf(signingDomain),
    selector: textOf(selector),
    algorithm: textOf(algo),
    aligned: Boolean(status.aligned),
    detail: textOf(status.comment),
  }))
}

function dmarcOf({ dmarc, dmarcSkipReason }: AuthenticateResult): Authentication['dmarc'] {
  if (dmarc !== false) {
    const { status, policy, domain, error } = dmarc
    const known = (['none', 'quarantine', 'reject'] as const).find((each) => each === policy)
    return {
      result: resultOf(status),
      domain: textOf(status.header?.from ?? domain),
      policy: known ?? null,
      // The comment only repeats the record.
      detail: textOf(error),
    }
  }
  // RFC 9989, section 11.5: DMARC does not apply to a mail with several authors.
  if (dmarcSkipReason === undefined || dmarcSkipReason === 'no-author-domain') return null
  return { result: 'permerror', domain: null, policy: null, detail: SKIPPED[dmarcSkipReason] }
}

const SKIPPED = {
  'multiple-author-domains': 'the From header names several domains',
  'multiple-from-fields': 'the mail has several From headers',
  'invalid-author-domain': 'the domain of the From header is invalid',
} as const

function arcOf({ arc }: AuthenticateResult): Pick<Authentication, 'arc'> {
  if (arc === false || arc.i === false || arc.status.result === 'none') return {}
  return { arc: { result: resultOf(arc.status), instances: arc.i, detail: textOf(arc.status.comment) } }
}

const RESULTS = ['none', 'neutral', 'pass', 'fail', 'softfail', 'policy', 'temperror', 'permerror'] as const

function resultOf({ result }: AuthStatus): AuthenticationResult {
  return RESULTS.find((known) => known === result) ?? 'neutral'
}

/** A text of the mail or of DNS, cut to a number of bytes; null if there is none. */
function textOf(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : cutToBytes(text, MAX_TEXT_BYTES).toWellFormed()
}

const END_OF_HEADER = Buffer.from('\r\n\r\n')
const LF = 10
const MAX_HEADER_BYTES = 128 * 1024
/** mailauth takes quadratic time to unfold a field and to read a line of the body. */
const MAX_FIELD_LINES = 500
const MAX_LINE_BYTES = 1024 * 1024
/** RFC 6376, section 4: a verifier may limit the number of signatures that it verifies. */
const MAX_SIGNATURES = 10
/** Each signature may need a hash of the whole body. */
const MAX_HASHED_BYTES = 64 * 1024 * 1024

/**
 * The mail with only its first signatures: at most ten, and fewer if the mail is large. If verifying it could take
 * seconds, the reason why it is not verified.
 */
function verifiableSource(raw: Buffer): { source: Buffer } | { reason: string } {
  const end = raw.indexOf(END_OF_HEADER)
  const header = end === -1 ? raw : raw.subarray(0, end)
  if (header.length > MAX_HEADER_BYTES) return { reason: 'the header is too large to be verified' }
  if (hasLongLine(raw)) return { reason: 'a line is too long to be verified' }
  const fields = header.toString('latin1').split(/\r\n(?![ \t])/)
  if (fields.some(hasManyLines)) return { reason: 'a header field has too many lines to be verified' }

  const maxSignatures = Math.min(MAX_SIGNATURES, Math.max(1, Math.floor(MAX_HASHED_BYTES / raw.length)))
  let signatures = 0
  const kept = fields.filter(
    (field) => !/^dkim-signature[ \t]*:/i.test(field) || ++signatures <= maxSignatures,
  )
  if (kept.length === fields.length) return { source: raw }
  return { source: Buffer.concat([Buffer.from(kept.join('\r\n'), 'latin1'), raw.subarray(header.length)]) }
}

function hasLongLine(raw: Buffer): boolean {
  for (let start = 0; raw.length - start > MAX_LINE_BYTES;) {
    const lineEnd = raw.lastIndexOf(LF, start + MAX_LINE_BYTES)
    if (lineEnd < start) return true
    start = lineEnd + 1
  }
  return false
}

function hasManyLines(field: string): boolean {
  return field.split('\n', MAX_FIELD_LINES + 2).length > MAX_FIELD_LINES + 1
}
