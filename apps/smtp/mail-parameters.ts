import { REFUSALS, type Refusal } from './replies.js'

/** What MAIL FROM says beside the address. */
export interface MailParameters {
  /** SIZE (RFC 1870); null where there is none. */
  declaredBytes: number | null
  /** SMTPUTF8 (RFC 6531). */
  isInternational: boolean
}

/**
 * Reads the parameters of MAIL FROM: those of the extensions that EHLO offers, each once. Any other is refused
 * with 555 (RFC 5321, section 4.1.1.11), since a mail would then be treated otherwise than the client asked for.
 */
export function readMailParameters(
  texts: readonly string[],
  { maxBytes, offersAuth }: { maxBytes: number; offersAuth: boolean },
): MailParameters | Refusal {
  const seen = new Set<string>()
  const read: MailParameters = { declaredBytes: null, isInternational: false }
  for (const text of texts) {
    const [keyword = '', ...rest] = text.split('=')
    const value = rest.length === 0 ? null : rest.join('=')
    const name = keyword.toUpperCase()
    if (seen.has(name)) return REFUSALS.wrongParameter
    seen.add(name)
    if (name === 'SIZE') {
      if (value === null || !/^\d{1,20}$/.test(value)) return REFUSALS.wrongParameter
      read.declaredBytes = Number(value)
    } else if (name === 'BODY') {
      // BINARYMIME needs CHUNKING (RFC 3030), which is not offered.
      if (value === null || !/^(7BIT|8BITMIME)$/i.test(value)) return REFUSALS.wrongParameter
    } else if (name === 'SMTPUTF8') {
      if (value !== null) return REFUSALS.wrongParameter
      read.isInternational = true
    } else if (name === 'AUTH' && offersAuth) {
      // Who submitted the mail first (RFC 4954, section 5), which nothing here depends on.
      if (value === null || value === '') return REFUSALS.wrongParameter
    } else {
      return REFUSALS.unknownParameter
    }
  }
  return (read.declaredBytes ?? 0) > maxBytes ? REFUSALS.tooLarge : read
}
