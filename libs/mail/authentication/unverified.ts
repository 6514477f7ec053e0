import type { Authentication } from '../message.js'

/** The result for a mail that could not be verified. A separate file, so that its users need not load mailauth. */
export function unverified(result: 'temperror' | 'permerror', detail: string): Authentication {
  const verification = { result, domain: null, detail }
  return { spf: verification, dkim: [], dmarc: { ...verification, policy: null } }
}
