import { readSender, type InjectMessage } from './inject-requests.dto.js'

/** Longer texts are encoded as base64: quoted-printable would block the event loop for too long. */
const MAX_QUOTED_CHARACTERS = 64 * 1024

/** The source of a mail from its validated JSON. */
export async function composeMail(mail: InjectMessage, to: string): Promise<Buffer> {
  // Loaded by the first mail, since most processes compose none.
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer')
  const { from, subject, text, html, headers = {}, attachments = [] } = mail
  const hasRecipient = Object.keys(headers).some((name) => name.toLowerCase() === 'to')
  const isLong = (text?.length ?? 0) + (html?.length ?? 0) > MAX_QUOTED_CHARACTERS
  const composer = new MailComposer({
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: 'windows',
    from: readSender(from),
    ...(hasRecipient ? {} : { to }),
    subject,
    ...(text !== undefined && { text }),
    ...(html !== undefined && { html }),
    ...(isLong && { encoding: 'base64' }),
    headers: Object.entries(headers).map(([key, value]) => ({ key, value })),
    attachments: attachments.map(({ filename, content_type: contentType, content }) => ({
      filename,
      contentType,
      contentDisposition: 'attachment',
      content: Buffer.from(content, 'base64'),
    })),
  })
  return composer.compile().build()
}
