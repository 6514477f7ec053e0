import { isUtf8 } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import type { MessageJson } from '#libs/mail/json/message-json.js'

/** Bytes of a source written at once, of base64's groups of three; in between other requests have their turn. */
const PIECE = 3 * 128 * 1024

/**
 * A message with its source, as JSON in UTF-8: the source as a string, as it is where it is UTF-8, in base64 where not.
 * Written piece by piece, since a source of many megabytes takes long.
 */
export async function messageWithRaw(message: MessageJson, raw: Buffer): Promise<Buffer> {
  const encoding = isUtf8(raw) ? 'utf-8' : 'base64'
  const decoder = new StringDecoder(encoding)
  const pieces: Buffer[] = [Buffer.from(`${JSON.stringify(message).slice(0, -1)},"raw":"`)]
  for (let at = 0; at < raw.length; at += PIECE) {
    if (at > 0) await new Promise(setImmediate)
    pieces.push(inString(decoder.write(raw.subarray(at, at + PIECE))))
  }
  pieces.push(inString(decoder.end()), Buffer.from(`","raw_encoding":"${encoding}"}`))
  return Buffer.concat(pieces)
}

/** What stands between the quotation marks of a JSON string. */
function inString(text: string): Buffer {
  return Buffer.from(JSON.stringify(text).slice(1, -1))
}
