export const MAX_URL_CHARACTERS = 2_048

export function isUrlTooLong(text: string): boolean {
  // A character is one or two UTF-16 units. Very long texts are rejected before their characters are counted.
  return text.length > 2 * MAX_URL_CHARACTERS || Array.from(text).length > MAX_URL_CHARACTERS
}

/** Matches absolute http and https URLs without white space, control characters and fragment. */
export const URL_FORM = '^[Hh][Tt][Tt][Pp][Ss]?://[^\\u0000-\\u0020\\u007f#]+$'

const FORM = new RegExp(URL_FORM, 'u')

/**
 * Why a text is not a valid URL for an endpoint; null if it is valid: absolute, http or https (https is not required), of
 * at most 2,048 characters, without user name, password and fragment (WHATWG URL Standard). The address is checked on
 * each connection, since a host name may resolve differently later.
 */
export function errorInUrl(text: string): string | null {
  if (isUrlTooLong(text)) return `must have at most ${MAX_URL_CHARACTERS} characters`
  const url = text.isWellFormed() && FORM.test(text) ? URL.parse(text) : null
  if (url === null) {
    return 'must be an absolute http or https URL without spaces and fragment, such as "https://ci.example/mail"'
  }
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
  return null
}
