import { hash } from 'node:crypto'
import type { Envelope, ParsedMail, Warning } from './message.js'
import { parseMail } from './parse.js'

/** As much of a header is read of a mail that could not be read as a whole. */
const HEADER_BYTES = 16 * 1024

/**
 * What the beginning of its header says of a mail that defeats the parser: no text, links, codes or attachments.
 * Resolves for any bytes, in a time that does not grow with their number but for their digest.
 */
export async function parseHeader(raw: Buffer, envelope: Envelope, warning: Warning): Promise<ParsedMail> {
  const nothing = parseNothing(raw, envelope, warning)
  try {
    const { text: _text, codes: _codes, links: _links, ...head } = await parseMail(headerOf(raw), envelope)
    const { html, htmlText, attachments, text, links, codes, size, sha256, warnings } = nothing
    return { ...head, html, htmlText, attachments, text, links, codes, size, sha256, warnings }
  } catch {
    return nothing
  }
}

/** The same of a mail of which not even that can be read: its envelope and its source. */
export function parseNothing(raw: Buffer, envelope: Envelope, warning: Warning): ParsedMail {
  return {
    subject: null,
    sender: envelope.mailFrom,
    recipient: envelope.rcptTo,
    from: [],
    to: [],
    cc: [],
    replyTo: [],
    date: null,
    text: null,
    html: null,
    htmlText: null,
    links: [],
    codes: [],
    attachments: [],
    headers: [],
    envelope,
    size: raw.length,
    sha256: hash('sha256', raw),
    warnings: [warning],
  }
}

/** Up to the first empty line, or as many whole lines as are read. */
function headerOf(raw: Buffer): Buffer {
  const start = raw.subarray(0, HEADER_BYTES)
  const ends = ['\r\n\r\n', '\n\n'].map((end) => start.indexOf(end)).filter((at) => at !== -1)
  const end =
    ends.length > 0 ? Math.min(...ends) : start.length < raw.length ? start.lastIndexOf('\n') : start.length
  return Buffer.concat([start.subarray(0, Math.max(end, 0)), Buffer.from('\r\n\r\n')])
}
