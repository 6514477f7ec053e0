import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/*
 * Which mail clients support which features of HTML and CSS, from the data of the package caniemail. Its check is not used
 * (docs/decisions/html-check.md).
 */

interface Data {
  last_update_date: string
  nicenames: { family: Record<string, string>; platform: Record<string, string> }
  data: {
    slug: string
    title: string
    keywords: string | null
    /** By family, platform and version, from old to new: `y`, `a` (partial), `n` or `u` (unknown), with `#` and notes. */
    stats: Record<string, Record<string, Record<string, string>>>
    notes_by_num: Record<string, string> | null
  }[]
}

const SIDES = ['bottom', 'left', 'right', 'top']

/** The properties of features whose titles do not list all of them. */
const PROPERTIES: Readonly<Record<string, readonly string[]>> = {
  'css-animation': suffixed(
    'animation',
    'delay direction duration fill-mode iteration-count name timing-function',
  ),
  'css-background-position': suffixed('background-position', 'x y'),
  'css-border-image': suffixed('border-image', 'outset repeat slice source width'),
  'css-border-radius': [
    'border-radius',
    ...crossed('border-', ['bottom', 'top'], ['-left-radius', '-right-radius']),
  ],
  'css-border-radius-logical': crossed('border-', ['start-', 'end-'], ['start-radius', 'end-radius']),
  'css-grid-template': suffixed('grid-template', 'areas columns rows'),
  'css-margin': suffixed('margin', SIDES.join(' ')),
  'css-outline': suffixed('outline', 'color style width'),
  'css-overflow': suffixed('overflow', 'block inline x y'),
  'css-padding': suffixed('padding', SIDES.join(' ')),
  'css-scroll-snap': crossed('scroll-snap-', ['align', 'stop', 'type'], ['']),
  'css-text-emphasis': suffixed('text-emphasis', 'color style'),
  'css-transition': suffixed('transition', 'delay duration property timing-function'),
}

/** Features whose keywords are all of their properties. */
const KEYWORDS_ARE_PROPERTIES = new Set(
  'css-border-inline-block-individual css-border-inline-block-longhand css-border css-column-layout-properties css-inset'.split(
    ' ',
  ),
)

/** What uses a feature, if its title does not say it. Empty if HTML can't. */
const USES: Readonly<Record<string, readonly string[]>> = {
  amp: ['attribute:⚡4email', 'attribute:amp4email'],
  bimi: [],
  'css-at-media-device-pixel-ratio': ['', 'min-', 'max-'].map(
    (bound) => `media:-webkit-${bound}device-pixel-ratio`,
  ),
  'css-comments': ['css:comment'],
  'css-important': ['css:important'],
  'css-inert-attribute': ['attribute:inert'],
  'css-intrinsic-size': ['fit-content', 'min-content', 'max-content'].map((name) => `keyword:${name}`),
  'css-modern-color': ['lch', 'oklch', 'lab', 'oklab'].map((name) => `function:${name}`),
  'css-nesting': ['css:nesting'],
  'css-pseudo-class-lang': ['pseudo:lang'],
  'css-selector-adjacent-sibling': ['selector:adjacent'],
  'css-selector-attribute': ['selector:attribute'],
  'css-selector-chaining': ['selector:chaining'],
  'css-selector-child': ['selector:child'],
  'css-selector-class': ['selector:class'],
  'css-selector-descendant': ['selector:descendant'],
  'css-selector-general-sibling': ['selector:sibling'],
  'css-selector-grouping': ['selector:grouping'],
  'css-selector-id': ['selector:id'],
  'css-selector-type': ['selector:type'],
  'css-selector-universal': ['selector:universal'],
  'css-sytem-ui': ['', 'ui-serif', 'ui-sans-serif', 'ui-rounded', 'ui-monospace'].map(
    (name) => `keyword:${name || 'system-ui'}`,
  ),
  'css-unit-calc': ['function:calc'],
  'css-unit-initial': ['keyword:initial'],
  'css-variables': ['css:variable', 'function:var'],
  'html-address': ['element:address'],
  'html-anchor-links': ['link:local'],
  'html-comments': ['html:comment'],
  'html-doctype': ['html:doctype'],
  'html-h1-h6': ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((name) => `element:${name}`),
  'html-image-maps': ['element:map'],
  'html-mailto-links': ['link:mailto'],
  'html-meta-color-scheme': ['meta:color-scheme'],
  'html-srcset': ['attribute:srcset', 'attribute:sizes'],
  'image-apng': ['image:apng'],
  'image-avif': ['image:avif'],
  'image-base64': ['image:base64'],
  'image-bmp': ['image:bmp'],
  'image-gif': ['image:gif'],
  'image-hdr': ['image:hdr'],
  'image-heif': ['image:heif', 'image:heic'],
  'image-ico': ['image:ico'],
  'image-jpg': ['image:jpg', 'image:jpeg'],
  'image-mp4': ['image:mp4'],
  'image-png': ['image:png'],
  'image-svg': ['image:svg'],
  'image-tiff': ['image:tiff', 'image:tif'],
  'image-webp': ['image:webp'],
}

/** What uses a feature, as `libs/mail/html-check` names it. Throws if neither its title nor a table says it. */
function usesOf({ slug, title, keywords }: Data['data'][number]): readonly string[] {
  const own = USES[slug]
  if (own !== undefined) return own
  const more = KEYWORDS_ARE_PROPERTIES.has(slug) ? (keywords ?? '').split(', ') : PROPERTIES[slug]
  if (more !== undefined) return propertiesOf([...(NAME.test(title) ? [title] : []), ...more])
  const [, element = '', type = ''] = /^<(\w+) type="(\w+)"> element$/.exec(title) ?? []
  if (type !== '') return [`${element}:${type}`]
  if (slug === 'html-semantics') return (keywords ?? '').split(', ').map((name) => `element:${name}`)
  const elements = [...title.matchAll(/<(\w+)>/g)].map(([, name]) => `element:${name}`)
  if (elements.length > 0) return elements
  const media = [...title.matchAll(/@media \(([\w-]+)\)/g)].map(([, name]) => `media:${name}`)
  if (media.length > 0) return media
  const [, value = ''] = /^([\w-]+: ?[\w-]+)$/.exec(title) ?? []
  if (value !== '') return [`value:${value.replace(' ', '')}`]
  const patterns: [RegExp, string][] = [
    [/^(.+) attribute$/, 'attribute'],
    [/^@([\w-]+)$/, 'at-rule'],
    [/^::?([\w-]+)(?:\(\))?$/, 'pseudo'],
    [/^([\w-]+)\(\)$/, 'function'],
    [/^([\w%]+) unit$/, 'unit'],
  ]
  for (const [pattern, kind] of patterns) {
    const [, name = ''] = pattern.exec(title) ?? []
    if (name !== '') return [`${kind}:${name}`]
  }
  const names = title
    .trim()
    .replace(/ (?:shorthand|(?:CSS )?property)$/, '')
    .split(/, | & /)
  if (!names.every((name) => NAME.test(name))) throw new Error(`nothing says what uses ${slug} ("${title}")`)
  return propertiesOf(names)
}

const NAME = /^[a-z-]+$/

function propertiesOf(names: readonly string[]): string[] {
  return [...new Set(names)].map((name) => `property:${name}`)
}

/** The text of libs/mail/html-check/mail-features.ts, with one feature in a line. */
export function renderMailFeatures(): string {
  const path = createRequire(import.meta.url).resolve('caniemail/caniemail.json')
  // The properties of an object are in their order, except for those whose names are numbers.
  const ordered = readFileSync(path, 'utf8').replace(/"(\d+)"(?=:)/g, '"$1 "')
  const { last_update_date, nicenames, data } = JSON.parse(ordered) as Data
  const nameOf = (family: string, platform: string) =>
    `${nicenames.family[family] ?? family} (${nicenames.platform[platform] ?? platform})`
  const clients = new Set(
    data.flatMap(({ stats }) =>
      Object.entries(stats).flatMap(([family, platforms]) =>
        Object.keys(platforms).map((platform) => nameOf(family, platform)),
      ),
    ),
  )
  const names = [...clients].toSorted()
  const features = data.flatMap((feature) => {
    const { slug, title, stats, notes_by_num } = feature
    const uses = usesOf(feature)
    if (uses.length === 0) return []
    const support = names.map(() => 'u')
    const notes = new Map<string, number[]>()
    for (const [family, platforms] of Object.entries(stats)) {
      for (const [platform, versions] of Object.entries(platforms)) {
        const newest = Object.values(versions).at(-1) ?? 'u'
        const client = names.indexOf(nameOf(family, platform))
        support[client] = newest.charAt(0)
        for (const [, number] of newest.startsWith('y') ? [] : newest.matchAll(/#(\d+)/g)) {
          const note = notes_by_num?.[`${number} `]
          if (note !== undefined) notes.set(note, [...(notes.get(note) ?? []), client])
        }
      }
    }
    return [{ slug, title: title.trim(), uses, support: support.join(''), notes: [...notes] }]
  })
  const lines = features.map((feature) => `  ${JSON.stringify(feature)},\n`)
  return `/*
 * Which mail clients support which features of HTML and CSS, as of ${last_update_date.slice(0, 10)}. Written by \`npm run generate\` from
 * the package caniemail: data of https://www.caniemail.com by Rémi Parmentier and contributors, MIT license.
 */

export interface MailFeature {
  /** Its name in the address of its page. */
  slug: string
  title: string
  /** What uses it, as html-uses.ts and css-uses.ts name it. */
  uses: readonly string[]
  /** A character for each of MAIL_CLIENTS: supported (\`y\`), partially (\`a\`), not (\`n\`), or unknown (\`u\`). */
  support: string
  /** Notes on its support, in Markdown, with the indexes of the clients. */
  notes: readonly (readonly [note: string, clients: readonly number[]])[]
}

export const MAIL_CLIENTS: readonly string[] = ${JSON.stringify(names)}

export const MAIL_FEATURES: readonly MailFeature[] = [
${lines.join('')}]
`
}

function suffixed(name: string, suffixes: string): string[] {
  return [name, ...suffixes.split(' ').map((suffix) => `${name}-${suffix}`)]
}

function crossed(prefix: string, firsts: readonly string[], seconds: readonly string[]): string[] {
  return firsts.flatMap((first) => seconds.map((second) => `${prefix}${first}${second}`))
}
