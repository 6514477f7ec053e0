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

// A bare URL ends at white space, invisible characters, quotation marks, angle brackets and East Asian punctuation.
const BARE_URL =
  /https?:\/\/[^\s\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069<>"“”„«»`|\\^{}、。，！？；：（）「」『』【】《》〈〉]+/gi

const TRAILING_PUNCTUATION = new Set(".,;:!?'*’‘…·")
const OPENERS = new Map([
  [')', '('],
  [']', '['],
])

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
  if (start >= end) return
  const section = start === 0 && end === text.length ? text : text.slice(start, end)
  for (const match of section.matchAll(BARE_URL)) {
    const href = trimUrl(withoutAdjacentWords(match[0]))
    const at = start + match.index
    if (URL.canParse(href)) yield { href, start: at, end: at + href.length }
  }
}

// Thai, the CJK scripts and Hangul: written without spaces, or with endings that are attached to the previous word.
const NON_ASCII = /[^\x00-\x7f]/
const SPACELESS = /[\u0e00-\u0e7f\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af]/

/**
 * Removes words of such a script directly after an ASCII letter or digit, because they belong to the sentence:
 * `https://x.example/a에서` leads to `/a`. After a delimiter (`/地図`, `=東京`) they belong to the URL.
 */
function withoutAdjacentWords(url: string): string {
  if (!NON_ASCII.test(url)) return url
  for (let at = 1; at < url.length; at++) {
    if (SPACELESS.test(url.charAt(at)) && /[0-9A-Za-z]/.test(url.charAt(at - 1))) return url.slice(0, at)
  }
  return url
}

/** Removes the sentence's punctuation at the end. A closing bracket is kept if the URL contains the opening one. */
function trimUrl(url: string): string {
  const excess = new Map<string, number>()
  for (const [closer, opener] of OPENERS) {
    excess.set(closer, occurrences(url, closer) - occurrences(url, opener))
  }
  let end = url.length
  for (; end > 0; end--) {
    const last = url.charAt(end - 1)
    const surplus = excess.get(last)
    if (surplus !== undefined && surplus > 0) excess.set(last, surplus - 1)
    else if (!TRAILING_PUNCTUATION.has(last)) break
  }
  return url.slice(0, end)
}

function occurrences(text: string, character: string): number {
  let count = 0
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count++
  return count
}
