import type { Link } from '../message.js'

/*
 * The links of an HTML mail, and the layout of its text.
 */

const MAX_LINKS = 20_000
/** Characters of one address. */
export const MAX_HREF_LENGTH = 8_192
/** Characters of all addresses together: a relative address is listed with its base, which may be long. */
const MAX_HREF_CHARACTERS = 4_000_000

interface OpenLink {
  link: Link
  words: TextFlow
  /** The texts of its images, which are used if the anchor has no other text. */
  imageText: string
  start: number
  isHidden: boolean
}

/** Collects the anchors, areas and forms of an HTML mail while it is parsed. */
export class LinkCollector {
  /** In order, including repeats. */
  readonly links: Link[] = []
  /** The positions in the visible text of the texts of anchors, in order. */
  readonly ranges: { start: number; end: number }[] = []
  /** Whether links were left out because of their number or length. */
  isCut = false
  private anchor: OpenLink | null = null
  private form: Link | null = null
  private button: TextFlow | null = null
  private base: string | undefined
  private hrefCharacters = 0

  /** `at` is the length of the visible text so far. */
  open(name: string, attributes: Record<string, string>, at: number, isHidden: boolean): void {
    if (name === 'base') this.setBase(attributes['href'])
    else if (name === 'a') this.openAnchor(attributes['href'], at, isHidden)
    else if (name === 'area') this.add(attributes['href'], collapse(attributes['alt']))
    else if (name === 'form') this.form = this.add(attributes['action'], '')
    else if (name === 'img' && this.anchor !== null) this.anchor.imageText += ` ${attributes['alt'] ?? ''}`
    else if (name === 'button') this.button = new TextFlow()
    else if (name === 'input') this.labelForm(attributes)
  }

  close(name: string, at: number): void {
    if (name === 'a') this.closeAnchor(at)
    else if (name === 'form') this.form = null
    else if (name === 'button' && this.button !== null) {
      if (this.form?.text === '') this.form.text = this.button.text
      this.button = null
    }
  }

  /** Hidden text counts only if the whole anchor is hidden. */
  addText(data: string, isHidden: boolean): void {
    if (this.anchor !== null && (!isHidden || this.anchor.isHidden)) this.anchor.words.add(data)
    if (!isHidden) this.button?.add(data)
  }

  separateWords(): void {
    this.anchor?.words.space()
  }

  /** A new anchor closes the previous one (HTML standard, section 13.2.6.4.7). */
  private openAnchor(address: string | undefined, at: number, isHidden: boolean): void {
    this.closeAnchor(at)
    const link = this.add(address, '')
    if (link === null) return
    this.anchor = { link, words: new TextFlow(), imageText: '', start: at, isHidden }
  }

  closeAnchor(at: number): void {
    const anchor = this.anchor
    if (anchor === null) return
    const words = anchor.words.text
    anchor.link.text = collapse(words === '' ? anchor.imageText : words)
    this.ranges.push({ start: anchor.start, end: at })
    this.anchor = null
  }

  private labelForm(attributes: Record<string, string>): void {
    if (this.form?.text !== '') return
    const type = attributes['type']?.toLowerCase()
    if (type === 'submit' || type === 'button') this.form.text = collapse(attributes['value'])
    else if (type === 'image') this.form.text = collapse(attributes['alt'])
  }

  private setBase(address: string | undefined): void {
    if ((address?.length ?? 0) <= MAX_HREF_LENGTH) this.base ??= toHttpUrl(address)
  }

  private add(address: string | undefined, text: string): Link | null {
    const isFull = this.links.length >= MAX_LINKS || this.hrefCharacters > MAX_HREF_CHARACTERS
    const isLong = (address?.length ?? 0) > MAX_HREF_LENGTH
    if (isFull || isLong) {
      this.isCut = true
      return null
    }
    const href = toHttpUrl(address, this.base)
    if (href === undefined) return null
    this.hrefCharacters += href.length
    const link = { href, text }
    this.links.push(link)
    return link
  }
}

/**
 * An address, unchanged, if it is one of http or https. A relative address needs a base. One without a scheme
 * (`//host`) is one of https, as in a web mailer.
 */
function toHttpUrl(address: string | undefined, base?: string): string | undefined {
  if (address === undefined) return undefined
  // The URL standard ignores line breaks and tabs within an address.
  const href = address.replace(/[\t\n\r]/g, '').trim()
  if (/^https?:\/\//i.test(href)) return URL.canParse(href) ? href : undefined
  if (base === undefined)
    return /^\/\/[^/]/.test(href) && URL.canParse(`https:${href}`) ? `https:${href}` : undefined
  if (href === '' || href.startsWith('#')) return undefined
  const resolved = URL.parse(href, base)
  return resolved?.protocol === 'http:' || resolved?.protocol === 'https:' ? resolved.href : undefined
}

function collapse(text = ''): string {
  return text.replace(/\s+/g, ' ').trim()
}

// Characters without width: soft hyphens, direction marks and the like. The joiners (U+200C, U+200D) are part of the
// spelling between characters beyond ASCII, and are removed elsewhere.
export const INVISIBLE =
  /[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])/g
/** Characters that `append` must change in a text. Most texts contain none. */
const UNCOLLAPSED =
  /[^\S ]| {2}|[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/

/** Text laid out as in HTML: white space is collapsed to one space, and blocks begin new lines. */
export class TextFlow {
  text = ''
  private isSpaceDue = false
  private isBreakDue = false
  private linesDepth = 0

  add(data: string): void {
    if (this.linesDepth === 0) {
      this.append(data)
      return
    }
    for (const [index, line] of data.split('\n').entries()) {
      if (index > 0) this.breakLine()
      this.append(line)
    }
  }

  space(): void {
    this.isSpaceDue = true
  }

  breakLine(): void {
    this.isBreakDue = true
  }

  /** Keeps the line breaks of the data until `endLines`, as in `pre`. */
  startLines(): void {
    this.linesDepth++
  }

  endLines(): void {
    this.linesDepth = Math.max(0, this.linesDepth - 1)
  }

  private append(data: string): void {
    const collapsed = UNCOLLAPSED.test(data) ? data.replace(INVISIBLE, '').replace(/\s+/g, ' ') : data
    if (collapsed === '') return
    const isSpaceFirst = collapsed.startsWith(' ')
    const isSpaceLast = collapsed.endsWith(' ')
    const words = isSpaceFirst || isSpaceLast ? collapsed.trim() : collapsed
    if (isSpaceFirst) this.isSpaceDue = true
    if (words === '') return
    if (this.text !== '') {
      if (this.isBreakDue) this.text += '\n'
      else if (this.isSpaceDue) this.text += ' '
    }
    this.text += words
    this.isBreakDue = false
    this.isSpaceDue = isSpaceLast
  }
}
