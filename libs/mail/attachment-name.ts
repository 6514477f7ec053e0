/** Types with a name of their own, and types whose subtype is not the ending of their files. */
const NAMES = new Map([
  ['text/calendar', 'invitation.ics'],
  ['application/ics', 'invitation.ics'],
  ['message/rfc822', 'message.eml'],
  ['message/global', 'message.eml'],
])
const ENDINGS = new Map(
  Object.entries({
    asc: 'application/pgp-signature application/pgp-keys application/pgp-encrypted',
    doc: 'application/msword',
    docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    gz: 'application/gzip',
    html: 'application/xhtml+xml',
    ico: 'image/vnd.microsoft.icon image/icon',
    jpg: 'image/jpeg image/pjpeg',
    js: 'text/javascript application/javascript',
    md: 'text/markdown',
    mov: 'video/quicktime',
    mp3: 'audio/mpeg',
    m4a: 'audio/mp4',
    odp: 'application/vnd.oasis.opendocument.presentation',
    ods: 'application/vnd.oasis.opendocument.spreadsheet',
    odt: 'application/vnd.oasis.opendocument.text',
    p7m: 'application/pkcs7-mime',
    p7s: 'application/pkcs7-signature',
    pkpass: 'application/vnd.apple.pkpass',
    ppt: 'application/vnd.ms-powerpoint',
    pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
    svg: 'image/svg+xml',
    txt: 'text/plain text/rfc822-headers message/delivery-status message/disposition-notification',
    vcf: 'text/vcard text/directory',
    xls: 'application/vnd.ms-excel',
    xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    zip: 'application/zip application/zip-compressed',
  }).flatMap(([ending, types]) => types.split(' ').map((type) => [type, ending] as const)),
)
/** Types of files whose subtype is their ending, such as `image/png`, `application/pdf` and `text/csv`. */
const SUBTYPE =
  /^(?:(?:image|audio|video|font|text)\/|application\/(?=(?:pdf|json|xml|rtf|yaml|wasm)$))([a-z0-9]{2,5})$/

/**
 * The file name of an attachment: the declared one, or else one from its type, `attachment` if the type says nothing.
 * The only place that makes up names, so they are the same wherever an attachment is listed or downloaded.
 */
export function attachmentName(filename: string | null, contentType: string): string {
  if (filename !== null) return filename
  const type = contentType.replace('/x-', '/')
  const named = NAMES.get(type)
  if (named !== undefined) return named
  const ending = ENDINGS.get(type) ?? SUBTYPE.exec(type)?.[1]
  return ending === undefined ? 'attachment' : `attachment.${ending}`
}
