import { domainToASCII } from 'node:url'
import type { Address } from '#libs/domain/inbox/events.js'

/** A local part that needs no quotes (RFC 5321, section 4.1.2; RFC 6531). */
const UNQUOTED = /^[^\s()<>[\]:;@\\,"]+$/u

/** The domain of a mailbox in A-labels (RFC 5890). Null for an address literal and a bare Postmaster. */
export function domainOf(mailbox: string): string | null {
  const at = mailbox.lastIndexOf('@')
  const domain = at < 0 ? '' : domainToASCII(mailbox.slice(at + 1))
  return domain === '' || domain.startsWith('[') ? null : domain
}

/**
 * The address of an inbox that a mailbox means: in lower case and NFC, without a tag (`local+tag@`, RFC 5233), its domain
 * in A-labels. Null for a mailbox without a domain, and for a local part that needs quotes.
 */
export function addressOf(mailbox: string): Address | null {
  const domain = domainOf(mailbox)
  const local = localPartOf(mailbox).normalize('NFC').toLowerCase()
  if (domain === null || !UNQUOTED.test(local)) return null
  const tag = local.indexOf('+')
  return `${tag > 0 ? local.slice(0, tag) : local}@${domain}` as Address
}

/** The tag of a mailbox as written, which may be empty. Null without a `+` after the local part's first character. */
export function tagOf(mailbox: string): string | null {
  const local = localPartOf(mailbox)
  const plus = local.indexOf('+')
  return plus > 0 ? local.slice(plus + 1) : null
}

function localPartOf(mailbox: string): string {
  return mailbox.slice(0, Math.max(mailbox.lastIndexOf('@'), 0))
}
