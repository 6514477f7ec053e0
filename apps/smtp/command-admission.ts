import { REFUSALS, type Refusal } from './replies.js'
import type { AuthOffer } from './smtp-auth.js'

/** What is said to a command before it is read any further. */
export interface Admission {
  /** Null if it is to be carried out. */
  refusal: Refusal | null
  /** Whether the session ends with the refusal. */
  isLast: boolean
  /** Whether it brings no mail any further by itself: all but RCPT and DATA. */
  isIdle: boolean
}

/** RFC 3207, section 4: what a server that demands TLS answers without it. */
const WITHOUT_TLS = new Set(['NOOP', 'EHLO', 'STARTTLS', 'QUIT'])
/** Their addresses may be beyond ASCII (RFC 6531, sections 3.3 and 3.7.4). */
const INTERNATIONAL = new Set(['MAIL', 'RCPT', 'VRFY', 'EXPN'])

/** What the session offers at the moment. */
export interface SessionState {
  requiresTls: boolean
  isSecure: boolean
  offersTls: boolean
  auth: AuthOffer
}

export function admissionOf(
  command: Buffer,
  { requiresTls, isSecure, offersTls, auth }: SessionState,
): Admission {
  const name = nameOf(command)
  const isIdle = name !== 'RCPT' && name !== 'DATA'
  // What follows BDAT is content (RFC 3030): it must not be taken for commands.
  if (name === 'BDAT') return { refusal: REFUSALS.chunkingNotOffered, isLast: true, isIdle }
  if (!isPlain(command, INTERNATIONAL.has(name))) {
    return { refusal: REFUSALS.notPlain, isLast: false, isIdle }
  }
  if (requiresTls && !isSecure && !WITHOUT_TLS.has(name)) {
    return { refusal: REFUSALS.tlsRequired, isLast: false, isIdle }
  }
  if (name === 'STARTTLS' && !offersTls)
    return { refusal: REFUSALS.startTlsNotOffered, isLast: false, isIdle }
  if (name === 'AUTH' && auth !== 'offered') {
    const refusal = auth === 'off' ? REFUSALS.authNotOffered : REFUSALS.authNeedsTls
    return { refusal, isLast: false, isIdle }
  }
  // It would tell who has an inbox (RFC 5321, section 7.3).
  if (name === 'EXPN') return { refusal: REFUSALS.expnNotOffered, isLast: false, isIdle }
  return { refusal: null, isLast: false, isIdle }
}

function nameOf(command: Buffer): string {
  const end = command.indexOf(' ')
  return command.toString('latin1', 0, end < 0 ? command.length : end).toUpperCase()
}

/** Whether there is no control character, a bare CR or LF among them, nor a byte beyond ASCII where it may not be. */
function isPlain(command: Buffer, isInternational: boolean): boolean {
  for (const byte of command)
    if (byte < 0x20 || byte === 0x7f || (byte > 0x7f && !isInternational)) return false
  return true
}
