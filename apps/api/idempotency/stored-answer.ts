import { hkdfSync } from 'node:crypto'
import { seal, secretKey, unseal, type SecretKey } from '#libs/ports/key-vault/seal.js'

/** An answer that is given again. */
export interface StoredAnswer {
  status: number
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

/*
 * What is sealed: status and headers as JSON in one line, a line feed, the body. The key comes of the caller's secret
 * (RFC 5869) and of what the record is called, so that nothing which Mayfly stores opens an answer.
 */

const LINE_FEED = 0x0a

export function sealAnswer({ status, headers, body }: StoredAnswer, secret: string, id: string): Buffer {
  const head = Buffer.from(`${JSON.stringify({ status, headers })}\n`)
  return seal(keyOf(secret, id), id, Buffer.concat([head, body]))
}

/** Throws SealBrokenError where it was sealed with another secret. */
export function openAnswer(sealed: Uint8Array, secret: string, id: string): StoredAnswer {
  const opened = unseal(keyOf(secret, id), id, sealed)
  const end = opened.indexOf(LINE_FEED)
  const head = JSON.parse(opened.toString('utf8', 0, end)) as Omit<StoredAnswer, 'body'>
  return { ...head, body: opened.subarray(end + 1) }
}

function keyOf(secret: string, id: string): SecretKey {
  return secretKey(Buffer.from(hkdfSync('sha256', secret, id, 'mayfly answer', 32)))
}
