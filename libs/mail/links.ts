import type { Link } from './message.js'
import type { HtmlContent } from './visible-text.js'

// White space, quotation marks, angle brackets and the punctuation of East Asian scripts end a bare URL.
const bareUrl = /https?:\/\/[^\s<>"“”„«»`|\\^{}、。，！？；：（）「」『』【】《》〈〉]+/gi

const trailing = new Set(".,;:!?'*’‘…·")
const openers = new Map([
  [')', '('],
  [']', '['],
])

/**
 * http and https links, without repeats: of the HTML's anchors, areas and forms first, then bare ones of its
 * visible text, then of the text part.
 */
export function findLinks(
  html: HtmlContent | null,
  text: string | null,
  maxLinks: number,
): { found: Link[]; isCut: boolean } {
  const found = new Map<string, Link>()
  let isCut = html?.areLinksCut ?? false
  const add = (link: Link): void => {
    const known = found.get(link.href)
    if (known !== undefined) {
      // A logo and a button often lead to the same place: the button's words say more.
      if (known.text === '' && link.text !== null) known.text = link.text
    } else if (found.size < maxLinks) found.set(link.href, { ...link })
    else isCut = true
  }

  html?.links.forEach(add)
  for (const href of html === null ? [] : bareUrlsOutside(html)) add({ href, text: null })
  for (const { href } of bareUrls(text ?? '')) add({ href, text: null })
  return { found: [...found.values()], isCut }
}

/** A URL that is an anchor's own words is where the sender says that it leads, not where it leads. */
function* bareUrlsOutside(html: HtmlContent): Generator<string> {
  let range = 0
  for (const { href, start } of bareUrls(html.text)) {
    while ((html.linkRanges[range]?.end ?? Infinity) <= start) range++
    if (start < (html.linkRanges[range]?.start ?? Infinity)) yield href
  }
}

function* bareUrls(text: string): Generator<{ href: string; start: number }> {
  if (!text.includes('://')) return
  for (const match of text.matchAll(bareUrl)) {
    const href = trimUrl(match[0])
    if (URL.canParse(href)) yield { href, start: match.index }
  }
}

/** Without the sentence's punctuation at its end; a closing bracket stays if it was opened within. */
function trimUrl(url: string): string {
  const excess = new Map<string, number>()
  for (const [closer, opener] of openers) {
    excess.set(closer, occurrences(url, closer) - occurrences(url, opener))
  }
  let end = url.length
  for (; end > 0; end--) {
    const last = url.charAt(end - 1)
    const surplus = excess.get(last)
    if (surplus !== undefined && surplus > 0) excess.set(last, surplus - 1)
    else if (!trailing.has(last)) break
  }
  return url.slice(0, end)
}

function occurrences(text: string, character: string): number {
  let count = 0
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count++
  return count
}
