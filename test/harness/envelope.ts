import type { Envelope } from '#libs/mail/message.js'

/** For tests in which the envelope does not matter. */
export const anyEnvelope: Envelope = {
  mailFrom: 'bounce@app.example',
  rcptTo: 'k3v+tag@mayfly.test',
  helo: 'mx.app.example',
  remoteAddress: '192.0.2.1',
  tls: null,
}
