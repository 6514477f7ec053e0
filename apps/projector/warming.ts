import { packSource, sealMail } from '#libs/ports/key-vault/content.js'
import { makeSecretKey } from '#libs/ports/key-vault/seal.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { ParseTask } from './parse-task.js'

const MAILS = 20

const SOURCE = [
  'From: App <app@example.com>',
  'To: someone@example.com',
  'Subject: =?utf-8?Q?Your_code_is_493201?=',
  'Date: Sat, 21 Nov 2026 02:14:41 +0000',
  'Content-Type: multipart/alternative; boundary=part',
  '',
  '--part',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'Your code is 493201. https://example.com/verify?code=493201',
  '--part',
  'Content-Type: text/html; charset=utf-8',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  '<p>Your code is <b>493201</b>. <a href=3D"https://example.com/verify">Verify</a></p>',
  '--part--',
  '',
].join('\r\n')

/** Mails that nobody gets: a thread that has read them has compiled what reading mail takes. */
export async function warmingTasks(): Promise<ParseTask[]> {
  const [key, raw] = [makeSecretKey(), Buffer.from(SOURCE)]
  const [accountId, receivedAt] = [mintId('acc'), new Date(0)]
  const [envelope, source] = [
    { mailFrom: '', rcptTo: '', helo: '', remoteAddress: '', tls: null },
    await packSource(raw),
  ]
  return Array.from({ length: MAILS }, () => {
    const [inboxId, messageId] = [mintId('inb'), mintId('msg')]
    return {
      accountId,
      inboxId,
      messageId,
      receivedAt,
      key,
      size: raw.length,
      sealed: sealMail(key, inboxId, messageId, envelope, source),
    }
  })
}
