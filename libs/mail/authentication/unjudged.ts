import type { Authentication } from '../message.js'

/** Of a mail that could not be judged at all. Apart from what judges, which only its threads need load. */
export function unjudged(result: 'temperror' | 'permerror', detail: string): Authentication {
  const judgement = { result, domain: null, detail }
  return { spf: judgement, dkim: [], dmarc: { ...judgement, policy: null } }
}
