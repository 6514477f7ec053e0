import type { Message } from '@mayfly/client'

export interface RenderOptions {
  /** Loads images, styles and fonts from the web. By default nothing is loaded. */
  allowRemote?: boolean | undefined
}

/** Images of the mail that are embedded: their number, their bytes, and the characters that they add to the HTML. */
const MAX_IMAGES = 50
const MAX_IMAGE_BYTES = 5 * 1024 * 1024
const MAX_EMBEDDED_CHARACTERS = 4 * MAX_IMAGE_BYTES

/**
 * A mail as an HTML document that can be shown safely. The mail may be hostile: no script runs, nothing leads to
 * another page by itself, and nothing is loaded, except with `allowRemote`. Its `cid:` images are embedded.
 */
export async function renderMail(
  message: Message,
  { allowRemote = false }: RenderOptions = {},
): Promise<string> {
  const sources = allowRemote ? 'data: http: https:' : 'data:'
  const policy = [
    "default-src 'none'",
    `img-src ${sources}`,
    `media-src ${sources}`,
    `font-src ${sources}`,
    `style-src 'unsafe-inline' ${sources}`,
  ].join('; ')
  const { html, text } = message
  const body =
    html === null
      ? `<pre style="white-space: pre-wrap">${escapeHtml(text ?? '')}</pre>`
      : embedImages(disableDirectives(html), await readImages(message, html))
  return `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">${body}`
}

/** Disables `<meta http-equiv="refresh">`, which a content security policy does not block. */
function disableDirectives(html: string): string {
  return html.replaceAll(/http-equiv/gi, 'disabled')
}

/** The images to which the HTML refers, as data URLs by their Content-ID. */
async function readImages({ attachments }: Message, html: string): Promise<Map<string, string>> {
  const urls = new Map<string, string>()
  let bytesLeft = MAX_IMAGE_BYTES
  for (const attachment of attachments) {
    const { content_id: id, content_type: type, size } = attachment
    const isImage = /^image\/[\w.+-]+$/.test(type)
    if (id === null || !isImage || !html.includes(id) || size > bytesLeft || urls.size === MAX_IMAGES)
      continue
    bytesLeft -= size
    urls.set(id, `data:${type};base64,${Buffer.from(await attachment.bytes()).toString('base64')}`)
  }
  return urls
}

function embedImages(html: string, urls: ReadonlyMap<string, string>): string {
  let charactersLeft = MAX_EMBEDDED_CHARACTERS
  return html.replaceAll(/cid:([^\s"'<>()]+)/gi, (reference, id: string) => {
    const url = urls.get(id)
    if (url === undefined || url.length > charactersLeft) return reference
    charactersLeft -= url.length
    return url
  })
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
