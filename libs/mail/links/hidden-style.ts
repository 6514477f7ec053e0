/** How the style of an element affects the visibility of its text. Undefined means that the style does not set it. */
export interface StyleEffect {
  /** Nothing within the element is shown. */
  isHidden: boolean
  /** The text is too small to be read, unless an inner element changes it. */
  isTiny: boolean | undefined
  color: Color | undefined
  background: Color | undefined
}

/** `#rrggbb` or `transparent`; null if it is unknown. */
export type Color = string | null

const NONE: StyleEffect = { isHidden: false, isTiny: undefined, color: undefined, background: undefined }

const MAX_STYLE_LENGTH = 2_000
const MAX_CACHED = 500

/** Reads styles. Mails repeat the same few style attributes many times, so the results are cached. */
export class StyleReader {
  private readonly cache = new Map<string, StyleEffect>()

  /** Null if the attributes of an element have no effect. */
  effectOf(name: string, attributes: Record<string, string>): StyleEffect | null {
    let effect = NONE
    let className: string | undefined
    for (const attribute in attributes) {
      const value = attributes[attribute] ?? ''
      if (attribute === 'style') effect = withStyle(effect, this.read(value.slice(0, MAX_STYLE_LENGTH)))
      else if (attribute === 'class') className = value
      else if (attribute === 'hidden') effect = { ...effect, isHidden: true }
      else if (attribute === 'bgcolor')
        effect = { ...effect, background: effect.background ?? colorOf(value) }
      else if (attribute === 'background') effect = { ...effect, background: null }
      else if ((attribute === 'color' && name === 'font') || (attribute === 'text' && name === 'body')) {
        effect = { ...effect, color: effect.color ?? colorOf(value) }
      }
    }
    // Links have another color by default, and a style sheet may set anything for a class.
    if (name === 'a' && effect.color === undefined) effect = { ...effect, color: null }
    if (className !== undefined) {
      const { isHidden, isTiny = false, color = null, background = null } = effect
      return { isHidden, isTiny, color, background }
    }
    return effect === NONE ? null : effect
  }

  private read(style: string): StyleEffect {
    const cached = this.cache.get(style)
    if (cached !== undefined) return cached
    const effect = readStyle(style)
    if (this.cache.size < MAX_CACHED) this.cache.set(style, effect)
    return effect
  }
}

/** A style takes precedence over other attributes, in any order. */
function withStyle(attributes: StyleEffect, style: StyleEffect): StyleEffect {
  if (attributes === NONE) return style
  return {
    isHidden: attributes.isHidden || style.isHidden,
    isTiny: style.isTiny,
    color: style.color ?? attributes.color,
    background: style.background ?? attributes.background,
  }
}

const SIZE_PROPERTIES = new Set(['height', 'max-height', 'width', 'max-width'])

function readStyle(style: string): StyleEffect {
  const effect = { ...NONE }
  let hasNoSize = false
  let isClipped = false
  for (const { property, value } of declarationsIn(style)) {
    if (SIZE_PROPERTIES.has(property)) hasNoSize ||= isZero(value)
    switch (property) {
      case 'display':
        effect.isHidden ||= value === 'none'
        break
      case 'visibility':
        effect.isHidden ||= value === 'hidden' || value === 'collapse'
        break
      case 'opacity':
        effect.isHidden ||= Number.parseFloat(value) === 0
        break
      case 'overflow':
        isClipped = value === 'hidden' || value === 'clip'
        break
      case 'font-size':
        effect.isTiny = isTinySize(value)
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
  effect.isHidden ||= hasNoSize && isClipped
  const { isHidden, isTiny, color, background } = effect
  return !isHidden && isTiny === undefined && color === undefined && background === undefined ? NONE : effect
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

/** Whether a font size is at most one pixel. Senders use this for preview text. */
function isTinySize(value: string): boolean {
  return isZero(value) || /^(?:0?\.\d+|1)px$/.test(value)
}

function backgroundOf(value: string): Color | undefined {
  if (value.includes('(') && !value.startsWith('rgb')) return null
  if (['', 'none', 'transparent', 'inherit', 'initial'].includes(value)) return undefined
  return colorOf(value.startsWith('rgb') ? value : (/^\S+/.exec(value)?.[0] ?? ''))
}

const NAMES = new Map([
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
  // Other names, variables and notations are not distinguished.
  return NAMES.get(color) ?? null
}
