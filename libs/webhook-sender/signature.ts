import { Webhook } from 'standardwebhooks'

export interface SignatureHeaders {
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}

/**
 * The headers by which a receiver knows who sent the body, when, and whether it came before (Standard Webhooks 1.0):
 * a signature for each secret, in their order. Secrets are the bytes behind `whsec_`. Throws where there is none.
 */
export function signatureHeaders(
  id: string,
  at: Date,
  body: string,
  secrets: readonly Uint8Array[],
): SignatureHeaders {
  if (secrets.length === 0) throw new Error(`${id} has no secret to be signed with`)
  const signatures = secrets.map((secret) => new Webhook(secret, { format: 'raw' }).sign(id, at, body))
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': signatures.join(' '),
  }
}
