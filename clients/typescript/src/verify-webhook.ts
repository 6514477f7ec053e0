import { MayflyError, WebhookVerificationError } from './errors.js'
import type { Schemas } from './options.js'

/** How far the time of an attempt may be from the clock of this machine. */
const MAX_AGE_S = 5 * 60

type HeaderValue = string | readonly string[] | undefined

/**
 * Verifies a webhook, and returns its event. `headers` are those of the request: a Headers object, or an object with
 * lower-case names as Node has it; `body` is the body exactly as it was received; `secret` the webhook's (`whsec_…`).
 * Rejects with WebhookVerificationError if the signature is wrong, or more than five minutes old, and with MayflyError if
 * the secret is malformed (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
 */
export async function verifyWebhook(
  headers: Headers | Readonly<Record<string, HeaderValue>>,
  body: string | Uint8Array,
  secret: string,
): Promise<Schemas['EventBody']> {
  const id = required(headers, 'webhook-id')
  const timestamp = required(headers, 'webhook-timestamp')
  const signatures = required(headers, 'webhook-signature').split(' ')
  const ageS = Math.abs(Date.now() / 1_000 - Number(timestamp))
  if (!/^\d+$/.test(timestamp) || ageS > MAX_AGE_S) {
    throw new WebhookVerificationError(
      'The webhook-timestamp is more than five minutes from the time of this machine.',
    )
  }
  const content = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`)
  const signed = new Uint8Array(prefix.length + content.length)
  signed.set(prefix)
  signed.set(content, prefix.length)
  const { subtle } = await webCrypto()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const secretBytes = decode(secret.replace(/^whsec_/, ''))
  // With an empty key, everybody could sign.
  if (secretBytes.length === 0) throw new MayflyError('The secret of a webhook is `whsec_` and base64.')
  const key = await subtle.importKey('raw', secretBytes, algorithm, false, ['verify'])
  for (const signature of signatures) {
    if (!signature.startsWith('v1,')) continue
    // The comparison takes the same time wherever the signatures differ.
    if (await subtle.verify('HMAC', key, decode(signature.slice(3)), signed)) {
      return JSON.parse(new TextDecoder().decode(content)) as Schemas['EventBody']
    }
  }
  throw new WebhookVerificationError('No signature in webhook-signature is valid for this secret.')
}

function required(headers: Headers | Readonly<Record<string, HeaderValue>>, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name]
  if (typeof value !== 'string') throw new WebhookVerificationError(`The header ${name} is missing.`)
  return value
}

/** Base64; empty if the text is something else. */
function decode(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}

/** Node 18 has it only as a module, whose name is a variable so that bundlers for browsers leave it out. */
async function webCrypto(): Promise<Pick<typeof crypto, 'subtle'>> {
  const name = 'node:crypto'
  if ('crypto' in globalThis) return globalThis.crypto
  return ((await import(name)) as { webcrypto: typeof crypto }).webcrypto
}
