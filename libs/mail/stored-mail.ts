import { EXAMPLE_MAIL, type ParsedMail } from './message.js'
import { textAt, type TextSpan } from './mime/mime.js'

/*
 * A parsed mail as the views store it. Texts that its source has are not stored again
 * (docs/decisions/mail-stored-once.md).
 */

/** Where the source has the texts of a mail. Omits a text that the source does not contain as a whole. */
export type TextSpans = Partial<Record<'text' | 'html', TextSpan>>

export interface StoredMail extends Omit<ParsedMail, keyof TextSpans> {
  text?: ParsedMail['text'] | undefined
  html?: ParsedMail['html'] | undefined
  spans?: TextSpans
  /** Bytes of the texts that were left out, as JSON. */
  leftOut?: number
}

/** A mail with a larger source is stored with its texts. Part of the form of the views. */
export const MAX_SPANNED_BYTES = 64 * 1024

/** Whether a mail with a source of that size is read with its source. */
export function needsSource(size: number): boolean {
  return size <= MAX_SPANNED_BYTES
}

/** A parsed mail as JSON, without the texts that its source has. */
export function writeMail(mail: ParsedMail, spans: TextSpans): string {
  const [text, leftOutText] = spans.text === undefined ? [mail.text] : [undefined, mail.text]
  const [html, leftOutHtml] = spans.html === undefined ? [mail.html] : [undefined, mail.html]
  const leftOut = Buffer.byteLength(JSON.stringify([leftOutText, leftOutHtml]))
  return JSON.stringify({ ...mail, text, html, spans, leftOut } satisfies StoredMail)
}

/**
 * Reads what `writeMail` wrote. Calls `source` if a text was left out; if the source is null, because it is damaged, the
 * text is null, with a warning. `bytes` are those of the whole mail as JSON. Throws a TypeError if a property is missing.
 */
export function readMail(json: string, source: () => Buffer | null): { mail: ParsedMail; bytes: number } {
  const { spans = {}, leftOut = 0, ...stored } = JSON.parse(json) as StoredMail
  const found = Object.entries(spans)
  const raw = found.length === 0 ? null : source()
  const isDamaged = found.length > 0 && raw === null
  const texts = found.map(([name, span]) => [name, raw && textAt(raw, span)])
  const mail = {
    ...stored,
    ...(Object.fromEntries(texts) as Pick<StoredMail, keyof TextSpans>),
    ...(isDamaged ? { warnings: [...stored.warnings, SEAL_BROKEN] } : {}),
  }
  for (const name in EXAMPLE_MAIL)
    if (!(name in mail)) throw new TypeError(`a stored mail lacks the property ${name}`)
  return { mail: mail as ParsedMail, bytes: Buffer.byteLength(json) + leftOut }
}

/** The warning of a mail whose sealed source can't be opened. */
export const SEAL_BROKEN = {
  code: 'seal-broken',
  detail: 'the stored mail is damaged and cannot be opened',
} as const satisfies ParsedMail['warnings'][number]
