import { domainToASCII } from 'node:url'
import type { Address } from '#libs/domain/inbox/events.js'

/** A local part that needs no quotes (RFC 5321, section 4.1.2; RFC 6531). */
const UNQUOTED = /^[^\s()<>[\]:;@\\,"]+$/u

/**
 * The address of an inbox that a mailbox means: in lower case and NFC, without a tag (`local+tag@`, RFC 5233), its domain
 * in A-labels (RFC 5890). Null for an address literal, a bare Postmaster, and a local part that needs quotes.
 */
export function addressOf(mailbox: string): Address | null {
  const at = mailbox.lastIndexOf('@')
  const local = mailbox.slice(0, Math.max(at, 0)).normalize('NFC').toLowerCase()
  const domain = domainToASCII(mailbox.slice(at + 1))
  if (domain === '' || domain.startsWith('[') || !UNQUOTED.test(local)) return null
  const tag = local.indexOf('+')
  return `${tag > 0 ? local.slice(0, tag) : local}@${domain}` as Address
}
