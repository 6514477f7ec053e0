import type { Authentication } from '../message.js'

/** Of a mail that could not be verified at all. Apart from what verifies, which only its threads need load. */
export function unverified(result: 'temperror' | 'permerror', detail: string): Authentication {
  const verdict = { result, domain: null, detail }
  return { spf: verdict, dkim: [], dmarc: { ...verdict, policy: null } }
}
