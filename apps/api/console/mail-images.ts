import { imageTypeOf } from '#libs/mail/image-type.js'
import type { EmbeddedPart } from '#libs/mail/mime/mime.js'

const IMAGE_DATA_URL = /^data:image\/(?:png|jpe?g|gif|webp|bmp);base64,[a-z0-9+/]+={0,2}$/i

/** Characters of the data URLs of a document. An image counts each time it is shown: it may be shown a million times. */
const MAX_EMBEDDED_CHARACTERS = 14_000_000
/** The bytes of the parts whose data URLs have that many characters. */
const MAX_INLINE_BYTES = 10_000_000
const MAX_URL_CHARACTERS = 8_192
const IMAGE_PROTOCOLS = ['http:', 'https:']

/** The data URLs of images, by the URLs that name them. */
export type InlineImages = Pick<ReadonlyMap<string, string>, 'get'>

/**
 * The data URLs of the parts that are images. A part is decoded, and counts towards the limit, when its URL is first used.
 */
export function dataUrlsOf(parts: readonly EmbeddedPart[]): InlineImages {
  const named = parts.flatMap((part) => part.urls.map((url) => ({ url, part })))
  const unread = Map.groupBy(named, ({ url }) => url)
  const found = new Map<string, string>()
  let bytesLeft = MAX_INLINE_BYTES
  const read = ({ urls, decode }: EmbeddedPart) => {
    const content = decode()
    const type = imageTypeOf(content)
    if (type === undefined || content.length > bytesLeft) return
    bytesLeft -= content.length
    const dataUrl = `data:${type};base64,${content.toString('base64')}`
    for (const url of urls) if (!found.has(url)) found.set(url, dataUrl)
  }
  return {
    get(url) {
      for (const { part } of unread.get(url) ?? []) {
        if (found.has(url)) break
        read(part)
      }
      unread.delete(url)
      return found.get(url)
    },
  }
}

/** Decides which images of a mail are loaded, and from where. */
export class MailImages {
  /** URLs of the web that are not loaded. */
  readonly blocked = new Set<string>()
  private charactersLeft = MAX_EMBEDDED_CHARACTERS
  private hasBaseElement = false

  /** `inline` has the result of `dataUrlsOf`. Relative URLs of images in the mail refer to `baseUrl`. */
  constructor(
    private readonly inline: InlineImages,
    private readonly isRemoteAllowed: boolean,
    private baseUrl: string | undefined,
  ) {}

  /** The `href` of a base element. Only the first one counts, as in browsers. */
  useBase(href: string): void {
    if (!this.hasBaseElement) this.baseUrl = this.absolute(href.trim()) || this.baseUrl
    this.hasBaseElement = true
  }

  /** The URL that the browser loads for a reference in the mail; null if it loads nothing. */
  urlOf(reference: string): string | null {
    const text = reference.trim()
    if (/^data:/i.test(text)) return this.embed(dataUrlOf(text))
    const embedded = this.inline.get(/^cid:/i.test(text) ? contentUrlOf(text) : this.absolute(text))
    if (embedded !== undefined) return this.embed(embedded)
    const url = absoluteUrlOf(text, IMAGE_PROTOCOLS)
    if (url === null || this.isRemoteAllowed) return url
    this.blocked.add(url)
    return null
  }

  private absolute(text: string): string {
    return text.length > MAX_URL_CHARACTERS ? '' : (parsedUrl(text, this.baseUrl)?.href ?? '')
  }

  private embed(url: string | null): string | null {
    if (url === null || url.length > this.charactersLeft) return null
    this.charactersLeft -= url.length
    return url
  }
}

/** A `cid:` URL without its percent-encoding (RFC 2392). */
function contentUrlOf(url: string): string {
  const encoded = url.slice('cid:'.length)
  try {
    return `cid:${decodeURIComponent(encoded)}`
  } catch {
    return `cid:${encoded}`
  }
}

function dataUrlOf(text: string): string | null {
  const url = text.replace(/\s+/g, '')
  return IMAGE_DATA_URL.test(url) ? url : null
}

/** An absolute URL with one of the protocols. */
export function absoluteUrlOf(text: string, protocols: readonly string[]): string | null {
  const trimmed = text.trim()
  if (trimmed.length > MAX_URL_CHARACTERS) return null
  const url = parsedUrl(trimmed)
  return url !== null && protocols.includes(url.protocol) ? url.href : null
}

/** A URL without a scheme (`//host`) is one of https, as in a web mailer. */
function parsedUrl(text: string, baseUrl?: string): URL | null {
  return URL.parse(text.startsWith('//') ? `https:${text}` : text, baseUrl)
}
