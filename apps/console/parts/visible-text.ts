/*
 * Text of a mail, as it is safe to read. Unicode has invisible characters that change the direction in which text is
 * shown: with U+202E, a file `gnp.exe` looks like `exe.png`. They are shown by their numbers.
 */

/** Embeddings, overrides, isolates, and the marks LRM, RLM and ALM. */
const CONTROLS = /\p{Bidi_Control}/gu
/** Without the marks, which Hebrew and Arabic text often has. */
const CONTROLS_OF_PARAGRAPHS = /[\u202a-\u202e\u2066-\u2069]/g

const codeOf = (character: string) => character.charCodeAt(0).toString(16).padStart(4, '0')
const shownControl = (character: string) => `[U+${codeOf(character).toUpperCase()}]`

/** A subject, a name or another text of one line. */
export function visibleLine(text: string): string {
  return text.replace(CONTROLS, shownControl)
}

/** A text with paragraphs. */
export function visibleText(text: string): string {
  return text.replace(CONTROLS_OF_PARAGRAPHS, shownControl)
}

/** The same text in source code whose strings have escapes of the form `\u202e`. */
export function escapedControls(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${codeOf(character)}`)
}

/** A name for a file that is saved. */
export function withoutControls(name: string): string {
  return name.replace(CONTROLS, '')
}
