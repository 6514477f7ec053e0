import { Parser } from 'htmlparser2'
import type { Link } from '../message.js'
import { StyleReader, type Color, type StyleEffect } from './hidden-style.js'
import { LinkCollector, TextFlow } from './html-links.js'

/** The text that a reader of an HTML mail sees, and its links. */
export interface HtmlContent {
  /** One line per block, with white space collapsed. */
  text: string
  /** Anchors, areas and forms with an http or https address, in order, including repeats. */
  links: Link[]
  /** The positions in `text` of the texts of anchors, in order. */
  linkRanges: { start: number; end: number }[]
  /** Whether links were left out because of their number or length. */
  areLinksCut: boolean
}

const IGNORED_ELEMENTS = new Set('head style script title template iframe object datalist'.split(' '))

const BLOCK_ELEMENTS = new Set(
  (
    'address article aside blockquote body br button caption center dd details dir div dl dt fieldset figcaption ' +
    'figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol optgroup option p pre section ' +
    'summary table tbody tfoot thead tr ul'
  ).split(' '),
)

/** The parser's time grows with the nesting. No normal mail comes near this limit. */
const MAX_NESTING = 1_000
const SLICE_LENGTH = 65_536

/** Reads HTML in one pass. Never fails. If elements are nested above the limit, the rest of the mail is left out. */
export function readHtml(html: string): HtmlContent {
  const reader = new HtmlReader()
  const parser = new Parser(reader, { decodeEntities: true })
  for (let at = 0; at < html.length && !reader.isTooDeep; at += SLICE_LENGTH) {
    parser.write(html.length <= SLICE_LENGTH ? html : html.slice(at, at + SLICE_LENGTH))
  }
  parser.end()
  return reader.finish()
}

/** The styles that inner elements inherit. */
interface Inherited {
  depth: number
  isTiny: boolean
  color: Color
  background: Color
}

class HtmlReader {
  isTooDeep = false
  private readonly flow = new TextFlow()
  private readonly links = new LinkCollector()
  private readonly styles = new StyleReader()
  private readonly inherited: Inherited[] = []
  /** Whether text at this position is too small to be read, or has the color of its background. */
  private isUnreadable = false
  private depth = 0
  /** Number of open elements from the outermost hidden one inwards; 0 if none is hidden. */
  private hiddenDepth = 0
  /** Whether the outermost hidden element contains no text for readers, like `style`. */
  private isIgnored = false

  onopentag(name: string, attributes: Record<string, string>): void {
    this.depth++
    if (this.depth > MAX_NESTING) this.isTooDeep = true
    if (this.isTooDeep) return
    if (this.hiddenDepth > 0) this.hiddenDepth++
    else {
      const effect = this.styles.effectOf(name, attributes)
      if (effect !== null) this.inherit(effect)
      this.isIgnored = IGNORED_ELEMENTS.has(name)
      if (this.isIgnored || effect?.isHidden === true) this.hiddenDepth = 1
    }
    this.links.open(name, attributes, this.flow.text.length, this.isHidden)
    if (this.hiddenDepth > 0) return
    if (name === 'pre') this.flow.startLines()
    this.separate(name)
  }

  ontext(data: string): void {
    if (this.isTooDeep || (this.hiddenDepth > 0 && this.isIgnored)) return
    this.links.addText(data, this.isHidden)
    if (!this.isHidden) this.flow.add(data)
  }

  onclosetag(name: string): void {
    if (!this.isTooDeep) {
      this.links.close(name, this.flow.text.length)
      if (this.hiddenDepth > 0) this.hiddenDepth--
      else {
        if (name === 'pre') this.flow.endLines()
        this.separate(name)
      }
      if (this.inherited.at(-1)?.depth === this.depth) {
        this.inherited.pop()
        this.isUnreadable = isUnreadable(this.inherited.at(-1))
      }
    }
    this.depth--
  }

  finish(): HtmlContent {
    this.links.closeAnchor(this.flow.text.length)
    const { links, ranges, isCut } = this.links
    return { text: this.flow.text, links, linkRanges: ranges, areLinksCut: isCut }
  }

  private get isHidden(): boolean {
    return this.hiddenDepth > 0 || this.isUnreadable
  }

  private inherit({ isTiny, color, background }: StyleEffect): void {
    if (isTiny === undefined && color === undefined && background === undefined) return
    const outer = this.inherited.at(-1) ?? { isTiny: false, color: null, background: null }
    const inner = {
      depth: this.depth,
      isTiny: isTiny ?? outer.isTiny,
      color: color === undefined ? outer.color : color,
      background: background === undefined ? outer.background : background,
    }
    this.inherited.push(inner)
    this.isUnreadable = isUnreadable(inner)
  }

  private separate(name: string): void {
    if (BLOCK_ELEMENTS.has(name)) {
      this.flow.breakLine()
      this.links.separateWords()
    } else if (name === 'td' || name === 'th') {
      this.flow.space()
      this.links.separateWords()
    }
  }
}

function isUnreadable(style: Inherited | undefined): boolean {
  if (style === undefined) return false
  const { isTiny, color, background } = style
  return isTiny || color === 'transparent' || (color !== null && color === background)
}
