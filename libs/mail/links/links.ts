import type { Link } from '../message.js'
import { MAX_HREF_LENGTH } from './html-links.js'
import type { HtmlContent } from './visible-text.js'

/**
 * The http and https links of a mail, without repeats: first the anchors, areas and forms of the HTML, then the bare
 * URLs of its visible text, then those of the text part.
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
      // A logo and a button often have the same address: the text of the button is more useful.
      if (known.text === '' && link.text !== null) known.text = link.text
    } else if (found.size < maxLinks && link.href.length <= MAX_HREF_LENGTH) found.set(link.href, { ...link })
    else isCut = true
  }

  html?.links.forEach(add)
  for (const href of html === null ? [] : bareUrlsOutsideAnchors(html)) add({ href, text: null })
  for (const { href } of bareUrls(text ?? '')) add({ href, text: null })
  return { found: [...found.values()], isCut }
}

/** The bare URLs outside of anchors. A URL in the text of an anchor need not be the address of the anchor. */
function* bareUrlsOutsideAnchors(html: HtmlContent): Generator<string> {
  let range = 0
  for (const { href, start } of bareUrls(html.text)) {
    while ((html.linkRanges[range]?.end ?? Infinity) <= start) range++
    if (start < (html.linkRanges[range]?.start ?? Infinity)) yield href
  }
}

/** A URL with its position in a text. */
interface BareUrl {
  href: string
  start: number
  end: number
}

/** An address in angle brackets, possibly over several lines. */
const BRACKETED = /<(https?:\/\/[^<>]{1,2000})>/gi
const BROKEN_LINES = /^\S+(?:[ \t]{0,20}\r?\n[ \t]{0,20}\S+){1,40}$/

/**
 * The http and https URLs in plain text, without the punctuation of the sentence around them. A URL in angle brackets
 * may be broken over several lines (RFC 3986, appendix C).
 */
export function* bareUrls(text: string): Generator<BareUrl> {
  if (!text.includes('://')) return
  let done = 0
  for (const broken of brokenUrls(text)) {
    yield* unbrokenUrls(text, done, broken.start)
    yield broken
    done = broken.end
  }
  yield* unbrokenUrls(text, done, text.length)
}

function* brokenUrls(text: string): Generator<BareUrl> {
  for (const match of text.matchAll(BRACKETED)) {
    const [, address = ''] = match
    if (!BROKEN_LINES.test(address)) continue
    const href = address.replace(/\s+/g, '')
    if (URL.canParse(href)) yield { href, start: match.index, end: match.index + match[0].length }
  }
}

function* unbrokenUrls(text: string, start: number, end: number): Generator<BareUrl> {
  const section = text.slice(start, end)
  for (let at = 0; ;) {
    SCHEME.lastIndex = at
    const scheme = SCHEME.exec(section)
    if (scheme === null) return
    at = endOfUrl(section, SCHEME.lastIndex)
    const href = trimUrl(section.slice(scheme.index, at), section.charAt(scheme.index - 1))
    const position = start + scheme.index
    if (URL.canParse(href)) yield { href, start: position, end: position + href.length }
  }
}

const SCHEME = /https?:\/\//gi

/** White space, controls and invisible characters. */
const BLANK = String.raw`\s\p{Cc}\p{Bidi_Control}\u00ad\u200b\u2060`
/** Punctuation of all scripts, except what words contain: apostrophes, most dashes and middle dots. */
const PUNCTUATION = String.raw`[[\p{Terminal_Punctuation}\p{Ps}\p{Pe}\p{Pi}\p{Pf}—―‥…]--[\p{ASCII}‘’]]`
/** Scripts without spaces or with endings that are attached to the previous word, and emoji. */
const ATTACHED = ['Thai', 'Lao', 'Khmer', 'Myanmar', 'Han', 'Hiragana', 'Katakana', 'Hangul']
  .map((script) => String.raw`\p{Script=${script}}`)
  .join('')
/**
 * What ends a URL. A closing bracket ends it only if its opening one is not in the URL (the last group). A comma, a
 * semicolon, a symbol or an opening bracket ends it before another URL, and so does `[/`, which begins a closing tag
 * of BBCode. Words of a script in `ATTACHED` directly after an ASCII letter or digit belong to the sentence:
 * `https://x.example/a에서` leads to `/a`. After a delimiter (`/地図`, `=東京`) they belong to the URL.
 */
const END = new RegExp(
  String.raw`[${BLANK}${PUNCTUATION}<>"\`\|\\^\{\}]|[,;\(\[[[\p{P}\p{S}]--\p{ASCII}]](?=['\(\[]?https?:\/\/)|\[\/|` +
    String.raw`(?<=[0-9A-Za-z][,;!]?)[${ATTACHED}\u30fc\p{Extended_Pictographic}]|([\(\)\[\]])`,
  'giv',
)

/** The end of the URL whose scheme ends at `from`. */
function endOfUrl(text: string, from: number): number {
  const open = { '(': 0, '[': 0 }
  END.lastIndex = from
  for (let end = END.exec(text); ; end = END.exec(text)) {
    const bracket = end?.[1]
    if (bracket === '(' || bracket === '[') open[bracket]++
    else if (bracket === ')' && open['('] > 0) open['(']--
    else if (bracket === ']' && open['['] > 0) open['[']--
    else return end?.index ?? text.length
  }
}

const TRAILING = /[.,;:!?'*\(\[[\p{P}--\p{ASCII}]]/v
/** Markers of emphasis that may also be the last character of a URL. */
const EMPHASIS = new Set('_~')

/**
 * Removes the sentence's punctuation at the end, the marker of emphasis that is also before the URL, and everything from
 * a square bracket that is not closed, as in `https://x.example/a[two words]`, because URLs escape such brackets.
 */
function trimUrl(url: string, before: string): string {
  const bracket = url.lastIndexOf('[')
  let end = bracket > url.lastIndexOf(']') ? bracket : url.length
  for (; end > 0; end--) {
    const last = url.charAt(end - 1)
    if (!TRAILING.test(last) && !(last === before && EMPHASIS.has(last))) break
  }
  return url.slice(0, end)
}
