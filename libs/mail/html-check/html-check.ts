import Type, { type Static } from 'typebox'
import { Count } from '#libs/runtime/resource.js'
import { readUses } from './html-uses.js'
import { MAIL_CLIENTS, MAIL_FEATURES, type MailFeature } from './mail-features.js'

/*
 * Which mail clients support the HTML and CSS of a mail (docs/decisions/html-check.md).
 */

/** Positions of a feature in the HTML that are listed. */
const MAX_POSITIONS = 10

const Position = Type.Object(
  {
    line: Type.Integer({ minimum: 1, description: 'Its line in `html` of the message, from 1.' }),
    column: Type.Integer({ minimum: 1, description: 'Its UTF-16 code unit in that line, from 1.' }),
  },
  { $id: 'HtmlPosition', description: 'An element, or a part of a style sheet, in the HTML of a mail.' },
)
export type Position = Static<typeof Position>

const ClientSupport = Type.Object(
  {
    name: Type.String({
      description: 'The mail client and its platform, in its newest version that was tested.',
    }),
    support: Type.Enum(['none', 'partial'], { description: 'How far it supports the feature.' }),
    notes: Type.Array(Type.String(), {
      description: 'What it does not support, or does instead, in Markdown.',
    }),
  },
  { $id: 'ClientSupport', description: 'A mail client that does not fully support a feature.' },
)

const HtmlWarning = Type.Object(
  {
    feature: Type.Object({
      slug: Type.String({ description: 'Its name for programs.' }),
      title: Type.String({ description: 'Its name.' }),
      url: Type.String({ description: 'Its page at caniemail.com.' }),
    }),
    where: Type.Object({
      count: Count('How often the mail uses it.'),
      positions: Type.Array(Position, { maxItems: MAX_POSITIONS, description: 'The first ones, in order.' }),
    }),
    clients: Type.Array(ClientSupport, {
      description: 'The clients that support it partially or not, by name.',
    }),
  },
  {
    $id: 'HtmlWarning',
    description: 'A feature that a mail uses and that some mail clients do not support.',
  },
)

const example = {
  supported_percent: 83.33,
  warnings: [
    {
      feature: {
        slug: 'css-display-flex',
        title: 'display:flex',
        url: 'https://www.caniemail.com/features/css-display-flex/',
      },
      where: { count: 1, positions: [{ line: 12, column: 5 }] },
      clients: [{ name: 'Outlook (Windows)', support: 'none', notes: [] }],
    },
  ],
}

export const HtmlCheck = Type.Object(
  {
    supported_percent: Type.Number({
      minimum: 0,
      maximum: 100,
      description:
        'The mean of 100 for full, 50 for partial and 0 for no support, over every feature that the mail uses and every ' +
        'client whose support for it is known. Two decimals; 100 if it uses none.',
    }),
    warnings: Type.Array(HtmlWarning, { description: 'The least supported feature first.' }),
  },
  {
    $id: 'HtmlCheck',
    description: 'Which mail clients support the HTML and CSS of a mail, from the data of caniemail.com.',
    examples: [example],
  },
)
export type HtmlCheck = Static<typeof HtmlCheck>

interface Found {
  feature: MailFeature
  count: number
  /** Positions in the HTML, in order. */
  starts: number[]
}

/** Null if elements are nested too deep. Takes time in proportion to the HTML, a second for a few MiB: run it in a thread. */
export function htmlCheck(html: string): HtmlCheck | null {
  const features: Found[] = MAIL_FEATURES.map((feature) => ({ feature, count: 0, starts: [] }))
  const byUse = Map.groupBy(
    features.flatMap((found) => found.feature.uses.map((use) => ({ use, found }))),
    ({ use }) => use,
  )
  const isRead = readUses(html, (use, at) => {
    for (const { found } of byUse.get(use) ?? []) {
      found.count += 1
      if (found.starts.length < MAX_POSITIONS && found.starts.at(-1) !== at) found.starts.push(at)
    }
  })
  if (!isRead) return null
  const used = features.filter(({ count }) => count > 0)
  const scored = used.map((found) => ({ found, ...scoreOf(found.feature) })).filter(({ known }) => known > 0)
  const known = sum(scored.map((each) => each.known))
  const points = sum(scored.map((each) => each.points))
  const positionOf = positionsIn(
    html,
    used.flatMap(({ starts }) => starts),
  )
  return {
    supported_percent: known === 0 ? 100 : Math.round((10_000 * points) / known) / 100,
    warnings: scored
      .filter((each) => each.points < each.known)
      .toSorted((a, b) => a.points / a.known - b.points / b.known)
      .map(({ found: { feature, count, starts } }) => ({
        feature: {
          slug: feature.slug,
          title: feature.title,
          url: `https://www.caniemail.com/features/${feature.slug}/`,
        },
        where: { count, positions: starts.map(positionOf) },
        clients: clientsWithout(feature),
      })),
  }
}

/** The clients whose support is known, and their points: 1 for full support, a half for partial support. */
function scoreOf({ support }: MailFeature): { known: number; points: number } {
  const known = Array.from(support).filter((each) => each !== 'u')
  return { known: known.length, points: sum(known.map((each) => ({ y: 1, a: 0.5 })[each] ?? 0)) }
}

function clientsWithout({ support, notes }: MailFeature): HtmlCheck['warnings'][number]['clients'] {
  return MAIL_CLIENTS.flatMap((name, index) => {
    const own = support.charAt(index)
    if (own !== 'n' && own !== 'a') return []
    const about = notes.filter(([, clients]) => clients.includes(index)).map(([note]) => note)
    return [{ name, support: own === 'n' ? 'none' : 'partial', notes: about }]
  })
}

/** A function from some positions in a text to lines and columns. */
function positionsIn(text: string, starts: readonly number[]): (start: number) => Position {
  const positions = new Map<number, Position>()
  let line = 1
  let lineStart = 0
  let lineEnd = text.indexOf('\n')
  for (const start of [...new Set(starts)].toSorted((a, b) => a - b)) {
    while (lineEnd >= 0 && lineEnd < start) {
      line += 1
      lineStart = lineEnd + 1
      lineEnd = text.indexOf('\n', lineStart)
    }
    positions.set(start, { line, column: start - lineStart + 1 })
  }
  return (start) => positions.get(start) ?? { line, column: 1 }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
