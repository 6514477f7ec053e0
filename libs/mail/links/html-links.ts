import type { Link } from '../message.js'

/** What is kept of links, each of which may repeat a long base. */
const maxLinks = 20_000
/** Characters of an address, as it is listed. */
export const maxHrefLength = 8_192
const maxHrefCharacters = 4_000_000

interface OpenLink {
  link: Link
  words: TextFlow
  /** Stands in where an anchor holds images only. */
  alternative: string
  start: number
  isHidden: boolean
}

/** Gathers the anchors, areas and forms of an HTML mail as its elements come by. */
export class LinkCollector {
  /** In order, repeats kept. */
  readonly links: Link[] = []
  /** Where in the visible text the words of anchors stand, in order. */
  readonly ranges: { start: number; end: number }[] = []
  /** Whether there were more links, or longer ones, than are kept. */
  isCut = false
  private anchor: OpenLink | null = null
  private form: Link | null = null
  private button: TextFlow | null = null
  private base: string | undefined
  private hrefCharacters = 0

  /** `at` is where the visible text stands. */
  open(name: string, attributes: Record<string, string>, at: number, isHidden: boolean): void {
    if (name === 'base') this.setBase(attributes['href'])
    else if (name === 'a') this.openAnchor(attributes['href'], at, isHidden)
    else if (name === 'area') this.add(attributes['href'], collapse(attributes['alt']))
    else if (name === 'form') this.form = this.add(attributes['action'], '')
    else if (name === 'img' && this.anchor !== null) this.anchor.alternative += ` ${attributes['alt'] ?? ''}`
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

  /** The words of an anchor that is hidden as a whole are its text all the same. */
  addText(data: string, isHidden: boolean): void {
    if (this.anchor !== null && (!isHidden || this.anchor.isHidden)) this.anchor.words.add(data)
    if (!isHidden) this.button?.add(data)
  }

  separateWords(): void {
    this.anchor?.words.space()
  }

  /** A new anchor ends the one before (HTML standard, section 13.2.6.4.7). */
  private openAnchor(address: string | undefined, at: number, isHidden: boolean): void {
    this.closeAnchor(at)
    const link = this.add(address, '')
    if (link === null) return
    this.anchor = { link, words: new TextFlow(), alternative: '', start: at, isHidden }
  }

  closeAnchor(at: number): void {
    const anchor = this.anchor
    if (anchor === null) return
    const words = anchor.words.text
    anchor.link.text = collapse(words === '' ? anchor.alternative : words)
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
    if ((address?.length ?? 0) <= maxHrefLength) this.base ??= followable(address)
  }

  private add(address: string | undefined, text: string): Link | null {
    const isFull = this.links.length >= maxLinks || this.hrefCharacters > maxHrefCharacters
    const isLong = (address?.length ?? 0) > maxHrefLength
    if (isFull || isLong) {
      this.isCut = true
      return null
    }
    const href = followable(address, this.base)
    if (href === undefined) return null
    this.hrefCharacters += href.length
    const link = { href, text }
    this.links.push(link)
    return link
  }
}

/**
 * An address as it stands, if it leads to http or https. A relative one leads somewhere only together with a
 * base; one without a scheme, `//host`, leads to https, as it does where a web mailer shows it.
 */
function followable(address: string | undefined, base?: string): string | undefined {
  if (address === undefined) return undefined
  // As the URL standard has it: line breaks and tabs within an address count for nothing.
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

// Soft hyphens, joiners that join nothing, marks of direction, and what else takes no room. Between letters of
// scripts other than Latin the joiners (U+200C, U+200D) are spelling.
const invisible =
  /[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])/g
/** Anything that setting text would change; most text has nothing of it. */
const unset =
  /[^\S ]| {2}|[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/

/** Text set as HTML sets it: runs of white space are one space, blocks begin new lines. */
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

  /** Until the matching `endLines`, line breaks in the data are line breaks in the text. */
  startLines(): void {
    this.linesDepth++
  }

  endLines(): void {
    this.linesDepth = Math.max(0, this.linesDepth - 1)
  }

  private append(data: string): void {
    const set = unset.test(data) ? data.replace(invisible, '').replace(/\s+/g, ' ') : data
    if (set === '') return
    const isSpaceFirst = set.startsWith(' ')
    const isSpaceLast = set.endsWith(' ')
    const words = isSpaceFirst || isSpaceLast ? set.trim() : set
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
