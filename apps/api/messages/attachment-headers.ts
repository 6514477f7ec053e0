import { create as contentDisposition } from 'content-disposition'
import type { Attachment } from '#libs/mail/message.js'

const MEDIA_TYPE =
  /^(?:text\/(?:plain|csv|calendar)|image\/(?:png|jpeg|gif|webp|bmp|tiff)|audio\/[\w.+-]{1,80}|video\/[\w.+-]{1,80}|font\/[\w.+-]{1,80}|message\/rfc822|application\/(?:pdf|zip|gzip|json|octet-stream|msword|rtf|vnd\.[\w.+-]{1,80}))$/i

/** An attachment is saved, never shown: what a sender made must not run in anybody's browser. */
export function attachmentHeaders({ filename, contentType }: Attachment): Record<string, string> {
  return {
    'content-type': MEDIA_TYPE.test(contentType) ? contentType : 'application/octet-stream',
    'content-disposition': contentDisposition(fileName(filename)),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  }
}

/** Without folders and control characters, and of bounded length. */
function fileName(given: string | null): string {
  const [name = ''] = (given ?? '').split(/[/\\]/).slice(-1)
  const clean = name.slice(0, 200).replaceAll(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '')
  return clean === '' || /^\.+$/.test(clean) ? 'attachment' : clean
}
