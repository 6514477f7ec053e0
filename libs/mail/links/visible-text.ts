import { Parser } from 'htmlparser2'
import { StyleReader, type Color, type StyleEffect } from './hidden-style.js'
import { LinkCollector, TextFlow } from './html-links.js'
import type { Link } from '../message.js'

/** What a reader of an HTML mail sees, and what can be followed from there. */
export interface HtmlContent {
  /** One line a block, white space collapsed. */
  text: string
  /** Anchors, areas and forms that lead to http or https, in order, repeats kept. */
  links: Link[]
  /** Where in `text` the words of those anchors stand: start and end of each, in order. */
  linkRanges: { start: number; end: number }[]
  /** Whether there were more links, or longer ones, than are kept. */
  areLinksCut: boolean
}

const unseen = new Set(['head', 'style', 'script', 'title', 'template', 'iframe', 'object', 'datalist'])

const blocks = new Set(
  (
    'address article aside blockquote body br button caption center dd details dir div dl dt fieldset figcaption ' +
    'figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol optgroup option p pre section ' +
    'summary table tbody tfoot thead tr ul'
  ).split(' '),
)

/** The parser's own work grows with the nesting; no mail that is meant to be read comes near this. */
const maxNesting = 1_000
const sliceLength = 65_536

/** Reads HTML in one pass. Never fails; what is nested absurdly deep is left out together with all after it. */
export function readHtml(html: string): HtmlContent {
  const reader = new HtmlReader()
  const parser = new Parser(reader, { decodeEntities: true })
  for (let at = 0; at < html.length && !reader.isTooDeep; at += sliceLength) {
    parser.write(html.length <= sliceLength ? html : html.slice(at, at + sliceLength))
  }
  parser.end()
  return reader.finish()
}

/** What of its style an element hands down to those within. */
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
  /** Whether text here has no size, or the colour of what is behind it. */
  private isFaded = false
  private depth = 0
  /** Elements open at and within the outermost one that is not shown. */
  private unseenDepth = 0
  /** Whether that one holds no text to be shown at all, as `style` does. */
  private isForeign = false

  onopentag(name: string, attributes: Record<string, string>): void {
    this.depth++
    if (this.depth > maxNesting) this.isTooDeep = true
    if (this.isTooDeep) return
    if (this.unseenDepth > 0) this.unseenDepth++
    else {
      const effect = this.styles.effectOf(name, attributes)
      if (effect !== null) this.inherit(effect)
      this.isForeign = unseen.has(name)
      if (this.isForeign || effect?.isGone === true) this.unseenDepth = 1
    }
    this.links.open(name, attributes, this.flow.text.length, this.isHidden)
    if (this.unseenDepth > 0) return
    if (name === 'pre') this.flow.startLines()
    this.separate(name)
  }

  ontext(data: string): void {
    if (this.isTooDeep || (this.unseenDepth > 0 && this.isForeign)) return
    this.links.addText(data, this.isHidden)
    if (!this.isHidden) this.flow.add(data)
  }

  onclosetag(name: string): void {
    if (!this.isTooDeep) {
      this.links.close(name, this.flow.text.length)
      if (this.unseenDepth > 0) this.unseenDepth--
      else {
        if (name === 'pre') this.flow.endLines()
        this.separate(name)
      }
      if (this.inherited.at(-1)?.depth === this.depth) {
        this.inherited.pop()
        this.isFaded = isFaded(this.inherited.at(-1))
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
    return this.unseenDepth > 0 || this.isFaded
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
    this.isFaded = isFaded(inner)
  }

  private separate(name: string): void {
    if (blocks.has(name)) {
      this.flow.breakLine()
      this.links.separateWords()
    } else if (name === 'td' || name === 'th') {
      this.flow.space()
      this.links.separateWords()
    }
  }
}

function isFaded(style: Inherited | undefined): boolean {
  if (style === undefined) return false
  const { isTiny, color, background } = style
  return isTiny || color === 'transparent' || (color !== null && color === background)
}
