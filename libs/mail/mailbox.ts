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
  const local = localPartOf(mailbox).toLowerCase().normalize('NFC')
  if (domain === null || !UNQUOTED.test(local)) return null
  const tag = local.indexOf('+')
  return `${tag > 0 ? local.slice(0, tag) : local}@${domain}` as Address
}

/** A dot-atom (RFC 5322, section 3.2.3; RFC 6531) without a tag and invisible characters. */
const CHOSEN =
  /^(?!\.)(?!.*\.[.@])[^+\p{Cc}\p{Cf}\p{Cs}]+@(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*$/u
/** RFC 5321, sections 4.5.3.1.1 and 4.5.3.1.3: a path has at most 256 octets with its angle brackets. */
const MAX_LOCAL_BYTES = 64
const MAX_ADDRESS_BYTES = 254

/** The address of `addressOf`, if the mailbox has no tag and is not too long: one that mail may have made an inbox for. */
export function untaggedAddressOf(mailbox: string): Address | null {
  const address = addressOf(mailbox)
  const isShort = address !== null && Buffer.byteLength(address) <= MAX_ADDRESS_BYTES
  return isShort && tagOf(mailbox) === null ? address : null
}

/** Whether an inbox may be created with an address that no inbox had: it is not too long, and has no `+` or misplaced dots. */
export function canBeChosen(address: Address): boolean {
  return CHOSEN.test(address) && Buffer.byteLength(localPartOf(address)) <= MAX_LOCAL_BYTES
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
