import {
  defaultTreeAdapter as nodes,
  html as names,
  parse,
  serialize,
  type DefaultTreeAdapterTypes,
} from 'parse5'
import { absoluteUrlOf, MailImages, type InlineImages } from './mail-images.js'
import { safeDeclarations, safeStyles } from './mail-styles.js'

/*
 * The HTML of a mail as a document that can be shown in a browser. The mail may be hostile.
 *
 * The HTML is parsed as browsers do, and written again from the tree with the elements and attributes listed here only.
 * The only one of them whose content browsers don't parse as HTML is `style`, which has no `<`, and elements of SVG and
 * MathML are dropped whole, so a browser reads in the result what was written (docs/decisions/showing-mail-html.md). The
 * result is parsed again to verify that.
 */

/** Browsers nest elements about as deep. Deeper trees take quadratic time. */
const MAX_DEPTH = 500
/** Elements and comments. A page with more is slow to lay out. */
const MAX_NODES = 100_000
const MAX_STYLE_CHARACTERS = 500_000

export const ELEMENTS: ReadonlySet<string> = new Set(
  (
    'html head body style a abbr acronym address area article aside b bdi bdo big blockquote br caption center cite ' +
    'code col colgroup dd del dfn dir div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ' +
    'ins kbd li main map mark menu nav ol p pre q rp rt ruby s samp section small span strike strong sub sup table ' +
    'tbody td tfoot th thead time tr tt u ul var wbr'
  ).split(' '),
)

/** Elements that are dropped with their content. All others that are not listed are replaced by `span`. */
const DROPPED = new Set(
  (
    'script noscript template iframe frame frameset noframes noembed object embed applet param meta base link title ' +
    'input select option optgroup textarea datalist keygen source track'
  ).split(' '),
)

/**
 * Attributes that load nothing and lead nowhere. `title` is not one of them: links have it to show their target, and an
 * element within a link could show another text.
 */
const ATTRIBUTES = new Set(
  (
    'abbr align alink alt bgcolor border cellpadding cellspacing class clear color cols colspan compact coords dir face ' +
    'frame headers height hspace id lang link media name noshade nowrap role rowspan rules scope shape size span start ' +
    'summary text type usemap valign value vlink vspace width'
  ).split(' '),
)

/** Attributes whose values are checked, or written by the sanitiser. */
const CHECKED_ATTRIBUTES = new Set(['style', 'background', 'src', 'href', 'target', 'rel', 'title'])

const LINK_PROTOCOLS = ['http:', 'https:', 'mailto:']

type Parent = DefaultTreeAdapterTypes.ParentNode
type Node = DefaultTreeAdapterTypes.ChildNode
type Element = DefaultTreeAdapterTypes.Element
type Attribute = Element['attrs'][number]

export interface MailHtml {
  html: string
  inlineImages: InlineImages
  /** What relative URLs of images in the mail refer to. */
  baseUrl?: string | undefined
  isRemoteAllowed: boolean
}

/** The HTML has too many elements, or nests them too deep. */
export class HtmlTooComplexError extends Error {
  override readonly name = 'HtmlTooComplexError'
}

/**
 * The document to show, and the number of images of the web that it does not load. Links open in a new tab, and have
 * their target as `title`. Throws HtmlTooComplexError. The time is not limited here.
 */
export function mailDocument(mail: MailHtml): { document: string; blocked: number } {
  const images = new MailImages(mail.inlineImages, mail.isRemoteAllowed, mail.baseUrl)
  // Without a doctype, the first one of the mail would decide how the rest is parsed, and browsers would decide again.
  const tree = parse(DOCTYPE + mail.html, { treeAdapter: limitedTree(), scriptingEnabled: false })
  const sanitizer = new Sanitizer(images)
  sanitizer.cleanTree(tree)
  setDefaults(tree, sanitizer.colorScheme)
  const document = DOCTYPE + serialize(tree)
  verifyDocument(document)
  return { document, blocked: images.blocked.size }
}

/**
 * Parses a document as the browser that shows it does. Throws an Error if it has other elements or attributes than the
 * sanitiser writes, which would be a bug in the sanitiser, and HtmlTooComplexError.
 */
export function verifyDocument(document: string): void {
  const tree = limitedTree()
  const treeAdapter: typeof nodes = {
    ...tree,
    createElement(tagName, namespace, attrs) {
      if (namespace !== names.NS.HTML || !ELEMENTS.has(tagName))
        throw new Error(`the sanitised HTML has an element "${tagName}"`)
      const other = attrs.find(({ name }) => !ATTRIBUTES.has(name) && !CHECKED_ATTRIBUTES.has(name))
      if (other !== undefined) throw new Error(`the sanitised HTML has an attribute "${other.name}"`)
      return tree.createElement(tagName, namespace, attrs)
    },
    createCommentNode() {
      throw new Error('the sanitised HTML has a comment')
    },
  }
  parse(document, { treeAdapter, scriptingEnabled: false })
}

const DOCTYPE = '<!doctype html>'

/** Long words don't make the document wider than its frame. */
const DEFAULTS = 'overflow-wrap:break-word'
/**
 * For an element with a long word, as a cell would be as wide as the word. Not for all elements: beside a long text, the
 * short words of other cells would be broken.
 */
const WITH_LONG_WORD = 'overflow-wrap:anywhere'
const LONG_WORD = /\S{30}/
const COLOR_SCHEMES = /^(?:\s*(?:light|dark|only|normal)(?!\S))+\s*$/i

/** A color scheme that the mail declares in a meta element would be lost with it, and its dark colors be on white. */
function setDefaults(tree: Parent, colorScheme: string | null): void {
  const [html] = tree.childNodes.filter((child) => nodes.isElementNode(child))
  if (html !== undefined)
    addStyle(html, colorScheme === null ? DEFAULTS : `${DEFAULTS};color-scheme:${colorScheme}`)
}

/** Adds declarations that the mail may change. */
function addStyle(element: Element, declarations: string): void {
  const own = valueOf(element, 'style')
  const value = own === null ? declarations : `${declarations};${own}`
  element.attrs = [...element.attrs.filter(({ name }) => name !== 'style'), { name: 'style', value }]
}

/** Throws HtmlTooComplexError while the parser adds nodes, before they take much time. */
function limitedTree(): typeof nodes {
  let size = 0
  let depth = 0
  const count = () => {
    size += 1
    if (size > MAX_NODES) throw new HtmlTooComplexError(`the HTML has more than ${MAX_NODES} nodes`)
  }
  return {
    ...nodes,
    createElement(...element) {
      count()
      return nodes.createElement(...element)
    },
    createCommentNode(data) {
      count()
      return nodes.createCommentNode(data)
    },
    onItemPush() {
      depth += 1
      if (depth > MAX_DEPTH)
        throw new HtmlTooComplexError(`the HTML is nested deeper than ${MAX_DEPTH} levels`)
    },
    onItemPop() {
      depth -= 1
    },
  }
}

class Sanitizer {
  /** That of the first meta element that declares one (HTML, section 4.2.5.1). */
  colorScheme: string | null = null
  private styleCharactersLeft = MAX_STYLE_CHARACTERS

  constructor(private readonly images: MailImages) {}

  /** Without recursion, since misnested formatting makes trees deeper than the parser's stack. */
  cleanTree(root: Parent): void {
    const parents = [root]
    for (const parent of parents) {
      parent.childNodes = parent.childNodes.filter((child) => nodes.isTextNode(child) || this.clean(child))
      if (parent.nodeName === 'pre') keepFirstLineBreak(parent)
      if (nodes.isElementNode(parent) && hasLongWord(parent)) addStyle(parent, WITH_LONG_WORD)
      for (const child of parent.childNodes)
        if (nodes.isElementNode(child) && child.tagName !== 'style') parents.push(child)
    }
  }

  /** Cleans a node without its children. Returns false if it must be dropped with them. */
  private clean(node: Node): boolean {
    if (!nodes.isElementNode(node) || node.namespaceURI !== names.NS.HTML) return false
    const base = node.tagName === 'base' ? valueOf(node, 'href') : null
    if (base !== null) this.images.useBase(base)
    if (node.tagName === 'meta') this.colorScheme ??= colorSchemeOf(node)
    if (DROPPED.has(node.tagName)) return false
    if (!ELEMENTS.has(node.tagName)) node.tagName = 'span'
    node.nodeName = node.tagName
    node.attrs = [...this.attributesOf(node)]
    if (node.tagName === 'style') this.cleanStyles(node)
    return true
  }

  private *attributesOf({ tagName, attrs }: Element): Generator<Attribute> {
    for (const { name, value } of attrs) {
      if (ATTRIBUTES.has(name)) yield { name, value }
      else if (name === 'style') yield { name, value: safeDeclarations(value, this.images) }
      else if (name === 'background' || (name === 'src' && tagName === 'img')) {
        const url = this.images.urlOf(value)
        if (url !== null) yield { name, value: url }
      } else if (name === 'href' && (tagName === 'a' || tagName === 'area')) yield* linkAttributes(value)
    }
  }

  private cleanStyles(style: Element): void {
    const css = style.childNodes.map((child) => (nodes.isTextNode(child) ? child.value : '')).join('')
    this.styleCharactersLeft -= css.length
    const value = this.styleCharactersLeft < 0 ? '' : safeStyles(css, this.images)
    style.childNodes = [{ nodeName: '#text', parentNode: style, value }]
  }
}

function valueOf({ attrs }: Element, attribute: string): string | null {
  return attrs.find(({ name }) => name === attribute)?.value ?? null
}

function colorSchemeOf(meta: Element): string | null {
  if (valueOf(meta, 'name')?.toLowerCase() !== 'color-scheme') return null
  const content = valueOf(meta, 'content')?.trim() ?? ''
  return COLOR_SCHEMES.test(content) ? content : null
}

function hasLongWord({ childNodes }: Element): boolean {
  return childNodes.some((child) => nodes.isTextNode(child) && LONG_WORD.test(child.value))
}

/** Parsers ignore a line break at the start of `pre`. */
function keepFirstLineBreak({ childNodes: [first] }: Parent): void {
  if (first !== undefined && nodes.isTextNode(first) && first.value.startsWith('\n'))
    first.value = `\n${first.value}`
}

/** The URL is written as a browser understands it, so the title can't differ from the target. */
function linkAttributes(href: string): Attribute[] {
  const url = absoluteUrlOf(href, LINK_PROTOCOLS)
  if (url === null) return []
  return [
    { name: 'href', value: url },
    { name: 'target', value: '_blank' },
    { name: 'rel', value: 'noopener noreferrer' },
    { name: 'title', value: url },
  ]
}
