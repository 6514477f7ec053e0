import { Parser } from 'htmlparser2'
import type { Link } from './message.js'
import { TextFlow } from './text-flow.js'

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

const hiddenStyle = /(?:^|;)\s{0,20}display\s{0,20}:\s{0,20}none/i

/** The parser's own work grows with the nesting; no mail that is meant to be read comes near this. */
const maxNesting = 1_000
const sliceLength = 65_536
/** What is kept of links, each of which may repeat a long base. */
const maxLinks = 20_000
const maxHrefLength = 8_192
const maxHrefCharacters = 4_000_000

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

interface OpenLink {
  link: Link
  words: TextFlow
  /** Stands in where an anchor holds images only. */
  alternative: string
  start: number
}

class HtmlReader {
  isTooDeep = false
  private readonly flow = new TextFlow()
  private readonly links: Link[] = []
  private readonly linkRanges: { start: number; end: number }[] = []
  private readonly openAnchors: (OpenLink | null)[] = []
  private form: Link | null = null
  private button: TextFlow | null = null
  private base: string | undefined
  private depth = 0
  private hrefCharacters = 0
  private areLinksCut = false
  /** Elements open at and within the outermost one that is not shown. */
  private unseenDepth = 0

  onopentag(name: string, attributes: Record<string, string>): void {
    this.depth++
    if (this.depth > maxNesting) this.isTooDeep = true
    if (this.isTooDeep) return
    if (name === 'base') this.setBase(attributes['href'])
    if (name === 'a') this.openAnchor(attributes['href'])
    else if (name === 'area') this.addLink(attributes['href'], collapse(attributes['alt']))
    else if (name === 'form') this.form = this.addLink(attributes['action'], '')
    if (this.unseenDepth > 0 || unseen.has(name) || isHidden(attributes)) {
      this.unseenDepth++
      return
    }
    if (name === 'img') this.describe(attributes['alt'])
    else if (name === 'button') this.button = new TextFlow()
    else if (name === 'input') this.labelForm(attributes)
    else if (name === 'pre') this.flow.startLines()
    this.separate(name)
  }

  ontext(data: string): void {
    if (this.unseenDepth > 0 || this.isTooDeep) return
    this.flow.add(data)
    this.openAnchors.at(-1)?.words.add(data)
    this.button?.add(data)
  }

  onclosetag(name: string): void {
    this.depth--
    if (this.isTooDeep) return
    if (name === 'a') this.closeAnchor()
    else if (name === 'form') this.form = null
    if (this.unseenDepth > 0) {
      this.unseenDepth--
      return
    }
    if (name === 'pre') this.flow.endLines()
    else if (name === 'button' && this.button !== null) {
      if (this.form?.text === '') this.form.text = this.button.text
      this.button = null
    }
    this.separate(name)
  }

  finish(): HtmlContent {
    const { links, linkRanges, areLinksCut } = this
    return { text: this.flow.text, links, linkRanges, areLinksCut }
  }

  private separate(name: string): void {
    if (blocks.has(name)) {
      this.flow.breakLine()
      this.openAnchors.at(-1)?.words.space()
    } else if (name === 'td' || name === 'th') {
      this.flow.space()
    }
  }

  private openAnchor(address: string | undefined): void {
    const link = this.addLink(address, '')
    this.openAnchors.push(
      link === null ? null : { link, words: new TextFlow(), alternative: '', start: this.flow.length },
    )
  }

  private closeAnchor(): void {
    const anchor = this.openAnchors.pop()
    if (anchor == null) return
    const words = anchor.words.text
    anchor.link.text = collapse(words === '' ? anchor.alternative : words)
    this.linkRanges.push({ start: anchor.start, end: this.flow.length })
  }

  private describe(alternative: string | undefined): void {
    const anchor = this.openAnchors.at(-1)
    if (anchor != null && alternative !== undefined) anchor.alternative += ` ${alternative}`
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

  private addLink(address: string | undefined, text: string): Link | null {
    const isFull = this.links.length >= maxLinks || this.hrefCharacters > maxHrefCharacters
    const isLong = (address?.length ?? 0) > maxHrefLength
    if (isFull || isLong) {
      this.areLinksCut = true
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

/** An address as it stands, if it leads to http or https; a relative one only together with a base. */
function followable(address: string | undefined, base?: string): string | undefined {
  if (address === undefined) return undefined
  // As the URL standard has it: line breaks and tabs within an address count for nothing.
  const href = address.replace(/[\t\n\r]/g, '').trim()
  if (/^https?:\/\//i.test(href)) return URL.canParse(href) ? href : undefined
  if (base === undefined || href === '' || href.startsWith('#')) return undefined
  const resolved = URL.parse(href, base)
  return resolved?.protocol === 'http:' || resolved?.protocol === 'https:' ? resolved.href : undefined
}

function isHidden(attributes: Record<string, string>): boolean {
  const style = attributes['style']
  return 'hidden' in attributes || (style !== undefined && hiddenStyle.test(style))
}

function collapse(text: string | undefined): string {
  return text === undefined ? '' : text.replace(/\s+/g, ' ').trim()
}
