/** The image types that browsers show without running or loading anything. SVG is not one of them. */
const IMAGE_TYPES = 'png|jpe?g|gif|webp|bmp'
const IMAGE_TYPE = new RegExp(`^image/(?:${IMAGE_TYPES})$`)
const IMAGE_DATA_URL = new RegExp(`^data:image/(?:${IMAGE_TYPES});base64,[a-z0-9+/]+={0,2}$`, 'i')

/** Characters of the data URLs of a document. An image counts each time it is shown: it may be shown a million times. */
const MAX_EMBEDDED_CHARACTERS = 14_000_000
/** The bytes of the attachments whose data URLs have that many characters. */
export const MAX_INLINE_BYTES = 10_000_000
const MAX_URL_CHARACTERS = 8_192
const IMAGE_PROTOCOLS = ['http:', 'https:']

/** Whether an attachment with this media type may be shown in a mail. */
export function isShownImage(mediaType: string): boolean {
  return IMAGE_TYPE.test(mediaType)
}

/** Decides which images of a mail are loaded, and from where. */
export class MailImages {
  /** URLs of the web that are not loaded. */
  readonly blocked = new Set<string>()
  private charactersLeft = MAX_EMBEDDED_CHARACTERS

  /** `inline` has the data URLs of attachments by their Content-ID. */
  constructor(
    private readonly inline: ReadonlyMap<string, string>,
    private readonly isRemoteAllowed: boolean,
  ) {}

  /** The URL that the browser loads for a reference in the mail; null if it loads nothing. */
  urlOf(reference: string): string | null {
    const text = reference.trim()
    if (/^cid:/i.test(text)) return this.embed(this.inline.get(contentIdOf(text)) ?? null)
    if (/^data:/i.test(text)) return this.embed(dataUrlOf(text))
    const url = absoluteUrlOf(text, IMAGE_PROTOCOLS)
    if (url === null || this.isRemoteAllowed) return url
    this.blocked.add(url)
    return null
  }

  private embed(url: string | null): string | null {
    if (url === null || url.length > this.charactersLeft) return null
    this.charactersLeft -= url.length
    return url
  }
}

/** The Content-ID in a `cid:` URL, where it is percent-encoded (RFC 2392). */
function contentIdOf(url: string): string {
  const encoded = url.slice('cid:'.length)
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

function dataUrlOf(text: string): string | null {
  const url = text.replace(/\s+/g, '')
  return IMAGE_DATA_URL.test(url) ? url : null
}

/** An absolute URL with one of the protocols. One without a scheme (`//host`) is one of https, as in a web mailer. */
export function absoluteUrlOf(text: string, protocols: readonly string[]): string | null {
  const trimmed = text.trim()
  if (trimmed.length > MAX_URL_CHARACTERS) return null
  const url = URL.parse(trimmed.startsWith('//') ? `https:${trimmed}` : trimmed)
  return url !== null && protocols.includes(url.protocol) ? url.href : null
}
