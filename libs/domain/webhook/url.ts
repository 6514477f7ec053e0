export const MAX_URL_CHARACTERS = 2_048

/** Begins and goes on as an absolute URL of http does: without blanks, control characters and a fragment. */
export const URL_FORM = '^[Hh][Tt][Tt][Pp][Ss]?://[^\\u0000-\\u0020\\u007f#]+$'

const FORM = new RegExp(URL_FORM, 'u')

/**
 * Why a text is no URL of an endpoint, null if it is one: absolute, http or https (https is not demanded), of at
 * most 2,048 characters, without user name, password and fragment, as the URL Standard reads it. Where it leads is
 * checked when it is connected to, since what a name stands for may change.
 */
export function faultOfUrl(text: string): string | null {
  // Characters are of one or two units: a text of any length is counted in little time.
  if (text.length > 2 * MAX_URL_CHARACTERS || Array.from(text).length > MAX_URL_CHARACTERS) {
    return `must be of at most ${MAX_URL_CHARACTERS} characters`
  }
  const url = text.isWellFormed() && FORM.test(text) ? URL.parse(text) : null
  if (url === null) {
    return 'must be an absolute http or https URL without blanks and without a fragment, as "https://ci.example/mail"'
  }
  if (url.username !== '' || url.password !== '') return 'must have no user name and no password in it'
  return null
}
