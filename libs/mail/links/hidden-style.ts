/** What the style of an element does to whether a reader sees the text in it. Undefined where it says nothing. */
export interface StyleEffect {
  /** Nothing in it is shown, whatever stands there. */
  isGone: boolean
  /** Too small to be read, unless an element within says otherwise. */
  isTiny: boolean | undefined
  color: Color | undefined
  background: Color | undefined
}

/** `#rrggbb` or what else stands there, in lower case; null if it can't be told. */
export type Color = string | null

const none: StyleEffect = { isGone: false, isTiny: undefined, color: undefined, background: undefined }

const maxStyleLength = 2_000
const maxRemembered = 500

/** Reads style attributes. Mails repeat a few of them over and over, so what was read is remembered. */
export class StyleReader {
  private readonly remembered = new Map<string, StyleEffect>()

  /** Null if an element has no effect of its own. */
  effectOf(name: string, attributes: Record<string, string>): StyleEffect | null {
    let effect = none
    let className: string | undefined
    for (const attribute in attributes) {
      const value = attributes[attribute] ?? ''
      if (attribute === 'style') effect = overriding(effect, this.read(value.slice(0, maxStyleLength)))
      else if (attribute === 'class') className = value
      else if (attribute === 'hidden') effect = { ...effect, isGone: true }
      else if (attribute === 'bgcolor')
        effect = { ...effect, background: effect.background ?? colorOf(value) }
      else if (attribute === 'background') effect = { ...effect, background: null }
      else if ((attribute === 'color' && name === 'font') || (attribute === 'text' && name === 'body')) {
        effect = { ...effect, color: effect.color ?? colorOf(value) }
      }
    }
    // Links have a colour of their own, and a style sheet may give anything to a class.
    if (name === 'a' && effect.color === undefined) effect = { ...effect, color: null }
    if (className !== undefined) {
      const { isGone, isTiny = false, color = null, background = null } = effect
      return { isGone, isTiny, color, background }
    }
    return effect === none ? null : effect
  }

  private read(style: string): StyleEffect {
    const known = this.remembered.get(style)
    if (known !== undefined) return known
    const effect = readStyle(style)
    if (this.remembered.size < maxRemembered) this.remembered.set(style, effect)
    return effect
  }
}

/** A style counts for more than attributes, wherever it stands among them. */
function overriding(attributes: StyleEffect, style: StyleEffect): StyleEffect {
  if (attributes === none) return style
  return {
    isGone: attributes.isGone || style.isGone,
    isTiny: style.isTiny,
    color: style.color ?? attributes.color,
    background: style.background ?? attributes.background,
  }
}

const extents = new Set(['height', 'max-height', 'width', 'max-width'])

function readStyle(style: string): StyleEffect {
  const effect = { ...none }
  let isFlat = false
  let isClipped = false
  for (const { property, value } of declarationsIn(style)) {
    if (extents.has(property)) isFlat ||= isZero(value)
    switch (property) {
      case 'display':
        effect.isGone ||= value === 'none'
        break
      case 'visibility':
        effect.isGone ||= value === 'hidden' || value === 'collapse'
        break
      case 'opacity':
        effect.isGone ||= Number.parseFloat(value) === 0
        break
      case 'overflow':
        isClipped = value === 'hidden' || value === 'clip'
        break
      case 'font-size':
        effect.isTiny = isUnreadable(value)
        break
      case 'font':
        effect.isTiny = /(?:^|\s)0(?:px|pt)?\//.test(value)
        break
      case 'color':
        effect.color = colorOf(value)
        break
      case 'background':
      case 'background-color':
        effect.background = backgroundOf(value)
    }
  }
  effect.isGone ||= isFlat && isClipped
  const { isGone, isTiny, color, background } = effect
  return !isGone && isTiny === undefined && color === undefined && background === undefined ? none : effect
}

function* declarationsIn(style: string): Generator<{ property: string; value: string }> {
  for (const declaration of style.toLowerCase().split(';')) {
    const colon = declaration.indexOf(':')
    if (colon === -1) continue
    const value = declaration.slice(colon + 1).replace('!important', '')
    yield { property: declaration.slice(0, colon).trim(), value: value.trim() }
  }
}

function isZero(value: string): boolean {
  return /^0(?:px|pt|em|rem|%)?$/.test(value)
}

/** Up to a pixel, as text for previews is set. */
function isUnreadable(value: string): boolean {
  return isZero(value) || /^(?:0?\.\d+|1)px$/.test(value)
}

function backgroundOf(value: string): Color | undefined {
  if (value.includes('(') && !value.startsWith('rgb')) return null
  if (['', 'none', 'transparent', 'inherit', 'initial'].includes(value)) return undefined
  return colorOf(value.startsWith('rgb') ? value : (/^\S+/.exec(value)?.[0] ?? ''))
}

const names = new Map([
  ['white', '#ffffff'],
  ['black', '#000000'],
])

function colorOf(value: string): Color {
  const color = value.trim().toLowerCase()
  if (/^#[0-9a-f]{3}$/.test(color)) return color.replace(/[0-9a-f]/g, '$&$&')
  if (/^#?[0-9a-f]{6}$/.test(color)) return color.startsWith('#') ? color : `#${color}`
  const parts = /^rgba?\(([^)]*)\)$/.exec(color)?.[1]?.split(/[\s,/]+/)
  if (parts !== undefined) {
    if (parts[3] !== undefined && Number.parseFloat(parts[3]) === 0) return 'transparent'
    const hex = parts.slice(0, 3).map((part) => Number.parseInt(part, 10).toString(16).padStart(2, '0'))
    return `#${hex.join('')}`
  }
  if (color === 'transparent') return color
  // What else there is (names, variables, systems of other kinds) is not told apart.
  return names.get(color) ?? null
}
