import type { Authentication } from '../message.js'

/**
 * The result for a mail that could not be verified. In a file of its own, so that only the verifying threads load
 * mailauth.
 */
export function unverified(result: 'temperror' | 'permerror', detail: string): Authentication {
  const verification = { result, domain: null, detail }
  return { spf: verification, dkim: [], dmarc: { ...verification, policy: null } }
}
