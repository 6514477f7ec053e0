import { bareUrls } from './bare-urls.js'
import { maxHrefLength } from './html-links.js'
import type { Link } from '../message.js'
import type { HtmlContent } from './visible-text.js'

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
    } else if (found.size < maxLinks && link.href.length <= maxHrefLength) found.set(link.href, { ...link })
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
