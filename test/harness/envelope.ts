import type { Envelope } from '#libs/mail/message.js'

/** For mails of which it does not matter how they came. */
export const anyEnvelope: Envelope = {
  mailFrom: 'bounce@app.example',
  rcptTo: 'k3v+tag@mayfly.test',
  helo: 'mx.app.example',
  remoteAddress: '192.0.2.1',
  tls: null,
}
