import { createHmac } from 'node:crypto'

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
  body: Uint8Array,
  secrets: readonly Uint8Array[],
): SignatureHeaders {
  if (secrets.length === 0) throw new Error(`${id} has no secret to be signed with`)
  const seconds = String(Math.floor(at.getTime() / 1_000))
  const signatures = secrets.map(
    (secret) =>
      `v1,${createHmac('sha256', secret).update(`${id}.${seconds}.`).update(body).digest('base64')}`,
  )
  return {
    'webhook-id': id,
    'webhook-timestamp': seconds,
    'webhook-signature': signatures.join(' '),
  }
}
