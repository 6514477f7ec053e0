import { isIP } from 'node:net'
import { authenticate, type AuthenticateResult, type AuthStatus } from 'mailauth'
import { messageOf } from '#libs/runtime/fault/message-of.js'
import { cutToBytes } from '../limits.js'
import type { Authentication, AuthenticationResult, Envelope } from '../message.js'
import type { Resolve } from './mail-dns.js'
import { judgedSource } from './judged-source.js'
import { unjudged } from './unjudged.js'

/** What SMTP knew of the sender. */
export type Sender = Pick<Envelope, 'mailFrom' | 'helo' | 'remoteAddress'>

const MOST_DETAIL_BYTES = 300
const MOST_NAME_BYTES = 255

/**
 * Judges who a mail is from, to the letter of the RFCs: a signature with rsa-sha1 counts as `policy` (RFC 8301), one
 * whose body was changed as `fail`. Resolves once DNS has answered or been given up. A mail that can't be judged, since
 * it is made like no real mail or defeats the library, is a `permerror`.
 */
export async function authenticateMail(
  raw: Buffer,
  { mailFrom, helo, remoteAddress }: Sender,
  resolver: Resolve,
): Promise<Authentication> {
  const judgedMail = judgedSource(raw)
  if ('reason' in judgedMail) return unjudged('permerror', judgedMail.reason)
  try {
    const judged = await authenticate(judgedMail.source, {
      sender: mailFrom,
      helo,
      ...(isIP(remoteAddress) === 0 ? {} : { ip: remoteAddress }),
      mta: 'mayfly',
      strict: true,
      disableBimi: true,
      resolver,
    })
    return { spf: spfOf(judged), dkim: dkimOf(judged), dmarc: dmarcOf(judged), ...arcOf(judged) }
  } catch (error) {
    return unjudged('permerror', cutToBytes(messageOf(error), MOST_DETAIL_BYTES).toWellFormed())
  }
}

function spfOf({ spf }: AuthenticateResult): Authentication['spf'] {
  if (spf === false || isIP(spf['client-ip']) === 0) return null
  return { result: resultOf(spf.status), domain: nameOf(spf.domain), detail: detailOf(spf.status.comment) }
}

function dkimOf({ dkim }: AuthenticateResult): Authentication['dkim'] {
  // The one entry of a mail without signatures says just that.
  const signatures = dkim.results.filter(({ status }) => status.result !== 'none')
  return signatures.map(({ status, signingDomain, selector, algo }) => ({
    result: resultOf(status),
    domain: nameOf(signingDomain),
    selector: nameOf(selector),
    algorithm: nameOf(algo),
    aligned: Boolean(status.aligned),
    detail: detailOf(status.comment),
  }))
}

function dmarcOf({ dmarc, dmarcSkipReason }: AuthenticateResult): Authentication['dmarc'] {
  if (dmarc !== false) {
    const { status, policy, domain, error } = dmarc
    const known = (['none', 'quarantine', 'reject'] as const).find((each) => each === policy)
    return {
      result: resultOf(status),
      domain: nameOf(status.header?.from ?? domain),
      policy: known ?? null,
      // Its comment repeats the record.
      detail: detailOf(error),
    }
  }
  // RFC 9989, section 11.5: several authors are no author whom DMARC could speak for.
  if (dmarcSkipReason === undefined || dmarcSkipReason === 'no-author-domain') return null
  return { result: 'permerror', domain: null, policy: null, detail: SKIPPED[dmarcSkipReason] }
}

const SKIPPED = {
  'multiple-author-domains': 'the From header names several domains',
  'multiple-from-fields': 'the mail has several From headers',
  'invalid-author-domain': 'the domain of the From header is none',
} as const

function arcOf({ arc }: AuthenticateResult): Pick<Authentication, 'arc'> {
  if (arc === false || arc.i === false || arc.status.result === 'none') return {}
  return { arc: { result: resultOf(arc.status), instances: arc.i, detail: detailOf(arc.status.comment) } }
}

const RESULTS: ReadonlySet<string> = new Set<AuthenticationResult>([
  ...(['none', 'neutral', 'pass', 'fail', 'softfail', 'policy', 'temperror', 'permerror'] as const),
])

function resultOf({ result }: AuthStatus): AuthenticationResult {
  return isResult(result) ? result : 'neutral'
}

function isResult(result: string): result is AuthenticationResult {
  return RESULTS.has(result)
}

function detailOf(comment: string | undefined): string | null {
  return comment === undefined || comment === ''
    ? null
    : cutToBytes(comment, MOST_DETAIL_BYTES).toWellFormed()
}

function nameOf(name: string | undefined): string | null {
  return name === undefined || name === '' ? null : cutToBytes(name, MOST_NAME_BYTES).toWellFormed()
}
