import { Parser } from 'htmlparser2'
import { readCss } from './css-uses.js'
import { imageUses, type OnUse } from './image-uses.js'

/** The parser's time grows with the nesting. No normal mail comes near this limit. */
const MAX_NESTING = 1_000
const SLICE_LENGTH = 65_536

/** Calls `onUse` with what HTML and the CSS in it use. Returns false if elements are nested too deep. Takes linear time. */
export function readUses(html: string, onUse: OnUse): boolean {
  let depth = 0
  let deepest = 0
  let css = { text: '', start: 0 }
  let isStyle = false
  const parser = new Parser({
    onopentag(name, attributes) {
      depth += 1
      deepest = Math.max(deepest, depth)
      readElement(name, attributes, parser.startIndex, onUse)
      isStyle = name === 'style'
      css = { text: '', start: -1 }
    },
    ontext(data) {
      if (!isStyle) return
      if (css.start < 0) css.start = parser.startIndex
      css.text += data
    },
    onclosetag() {
      depth -= 1
      if (isStyle) readCss(css.text, 'rules', css.start, onUse)
      isStyle = false
    },
    oncomment: () => onUse('html:comment', parser.startIndex),
    onprocessinginstruction(_name, data) {
      if (/^!doctype\s+html\s*$/i.test(data)) onUse('html:doctype', parser.startIndex)
    },
  })
  for (let at = 0; at < html.length && deepest <= MAX_NESTING; at += SLICE_LENGTH) {
    parser.write(html.slice(at, at + SLICE_LENGTH))
  }
  parser.end()
  return deepest <= MAX_NESTING
}

/** The types of elements without a `type`. */
const DEFAULT_TYPES = new Map([
  ['input', 'text'],
  ['button', 'submit'],
])

function readElement(
  name: string,
  attributes: Readonly<Record<string, string>>,
  at: number,
  onUse: OnUse,
): void {
  onUse(`element:${name}`, at)
  for (const attribute of Object.keys(attributes)) onUse(`attribute:${attribute}`, at)
  const { style, href, src, srcset, background } = attributes
  if (style !== undefined) readCss(style, 'declarations', at, (use) => onUse(use, at))
  const defaultType = DEFAULT_TYPES.get(name)
  if (defaultType !== undefined) onUse(`${name}:${(attributes['type'] ?? defaultType).toLowerCase()}`, at)
  if (name === 'meta' && attributes['name']?.toLowerCase() === 'color-scheme') onUse('meta:color-scheme', at)
  if ((name === 'a' || name === 'area') && href !== undefined) {
    if (/^\s*#./.test(href)) onUse('link:local', at)
    else if (/^\s*mailto:/i.test(href)) onUse('link:mailto', at)
  }
  if (name === 'img' && src !== undefined) imageUses(src.trim(), at, onUse)
  if (background !== undefined) imageUses(background.trim(), at, onUse)
  for (const candidate of srcset?.split(',') ?? [])
    imageUses(/\S*/.exec(candidate.trim())?.[0] ?? '', at, onUse)
}
