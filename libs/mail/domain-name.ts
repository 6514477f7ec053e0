import { domainToASCII } from 'node:url'
import { parse } from 'tldts'
import { MAX_NAME_LABELS } from '#libs/domain/account/domain.js'

/** The name of the TXT record, and so each domain, must fit in a DNS name of 253 characters (RFC 1035, section 2.3.4). */
export const MAX_NAME_CHARACTERS = 235
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Reads the name of a domain whose mail an account wants to receive: in lower case, as A-labels (RFC 5890), without a dot
 * at the end; or an error.
 * `ownDomains` are those of generated addresses.
 */
export function readDomainName(
  text: string,
  ownDomains: readonly string[],
): { name: string } | { error: string } {
  const isTooLong = text.length > MAX_NAME_CHARACTERS
  const name = isTooLong ? '' : domainToASCII(text).replace(/\.$/, '')
  const labels = name.split('.')
  if (isTooLong || name.length > MAX_NAME_CHARACTERS || labels.length > MAX_NAME_LABELS) {
    return { error: `must have at most ${MAX_NAME_CHARACTERS} characters and ${MAX_NAME_LABELS} labels` }
  }
  if (labels.some((label) => !LABEL.test(label)) || /^\d*$/.test(labels.at(-1) ?? '')) {
    return { error: 'must be a domain name, such as staging.example.com' }
  }
  // The private section of the list is ignored: who has a name below github.io may receive its mail.
  if (labels.length === 1 || parse(name, { allowPrivateDomains: false }).publicSuffix === name) {
    return { error: `must not be a public suffix, as ${name} is: use a domain below it` }
  }
  for (const own of ownDomains.map((each) => domainToASCII(each))) {
    if (name === own || name.endsWith(`.${own}`) || own.endsWith(`.${name}`)) {
      return { error: `must not be the mail domain ${own}, a parent or a subdomain of it` }
    }
  }
  return { name }
}

/** The part of a name that a DNS provider asks for in the zone of the registrable domain; `@` for the zone itself. */
export function zoneName(name: string): string {
  const { subdomain } = parse(name, { allowPrivateDomains: false, validateHostname: false })
  return subdomain === null || subdomain === '' ? '@' : subdomain
}
