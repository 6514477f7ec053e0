import { htmlCheck } from './html-check.js'
import { readUses } from './html-uses.js'
import { MAIL_CLIENTS, MAIL_FEATURES } from './mail-features.js'

/** What the HTML uses, in order. */
function usesOf(html: string): string[] {
  const uses: string[] = []
  readUses(html, (name) => uses.push(name))
  return uses
}

function usesOfCss(css: string): string[] {
  return usesOf(`<style>${css}</style>`).filter((name) => name !== 'element:style')
}

describe('what HTML uses', () => {
  it.each([
    ['<P Align=left>x</P>', ['element:p', 'attribute:align']],
    ['<!DOCTYPE html><!-- x -->', ['html:doctype', 'html:comment']],
    ['<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01//EN">', []],
    ['<a href=" #top">', ['element:a', 'attribute:href', 'link:local']],
    ['<a href="#">', ['element:a', 'attribute:href']],
    ['<a href="MAILTO:a@b.example">', ['element:a', 'attribute:href', 'link:mailto']],
    ['<input>', ['element:input', 'input:text']],
    ['<button type=Reset>', ['element:button', 'attribute:type', 'button:reset']],
    ['<meta name="Color-Scheme">', ['element:meta', 'attribute:name', 'meta:color-scheme']],
    ['<img src="/a.PNG?v=1.gif#x.svg">', ['element:img', 'attribute:src', 'image:png']],
    ['<img src="cid:logo">', ['element:img', 'attribute:src']],
    [
      '<img src="data:image/svg+xml;base64,PH=">',
      ['element:img', 'attribute:src', 'image:svg', 'image:base64'],
    ],
    ['<img srcset="a.webp 1x, b.avif 2x">', ['element:img', 'attribute:srcset', 'image:webp', 'image:avif']],
    ['<td background=a.jpg>', ['element:td', 'attribute:background', 'image:jpg']],
    [
      '<b style="color: red; margin: 1PX">',
      [
        'element:b',
        'attribute:style',
        'property:color',
        'keyword:red',
        'value:color:red',
        'property:margin',
        'unit:px',
      ],
    ],
    ['<constructor __proto__=a>', ['element:constructor']],
    ['<svg><style>a{}</style></svg>', ['element:svg', 'element:style', 'selector:type']],
    ['<b title="<style>a{b:1px}</style>">', ['element:b', 'attribute:title']],
    ['<style>a{b:1px', ['element:style', 'selector:type', 'property:b', 'unit:px']],
  ])('%s', (html, expected) => {
    expect(usesOf(html)).toEqual(expected)
  })
})

describe('what CSS uses', () => {
  it.each([
    ['a:hover{}', ['selector:type', 'pseudo:hover']],
    ['.a.b{}', ['selector:class', 'selector:class', 'selector:chaining']],
    ['.a .b{}', ['selector:class', 'selector:descendant', 'selector:class']],
    [
      '#a > b + c ~ * {}',
      [
        'selector:id',
        'selector:child',
        'selector:type',
        'selector:adjacent',
        'selector:type',
        'selector:sibling',
        'selector:universal',
      ],
    ],
    ['a , b {}', ['selector:type', 'selector:type', 'selector:grouping']],
    [
      'a:not(.b, .c)::after{}',
      ['selector:type', 'pseudo:not', 'selector:class', 'selector:class', 'pseudo:after'],
    ],
    ['[href^="a>b"]{}', ['selector:attribute']],
    [
      'a{b:c;&:hover{d:e}}',
      [
        'selector:type',
        'property:b',
        'keyword:c',
        'value:b:c',
        'css:nesting',
        'css:nesting',
        'pseudo:hover',
        'property:d',
        'keyword:e',
        'value:d:e',
      ],
    ],
    ['a{b:1% !important}', ['selector:type', 'property:b', 'unit:%', 'css:important']],
    [
      'a{display:flex!important}',
      ['selector:type', 'property:display', 'keyword:flex', 'css:important', 'value:display:flex'],
    ],
    [
      'a{--b:calc(1em + var(--c))}',
      ['selector:type', 'css:variable', 'function:calc', 'unit:em', 'function:var', 'keyword:--c'],
    ],
    [
      'a{b:url(c.png) url("d.gif")}',
      ['selector:type', 'property:b', 'image:png', 'function:url', 'image:gif'],
    ],
    ['a{b:"1px"}/* c:2em */', ['selector:type', 'property:b', 'css:comment']],
    ['@import url(a.css) (orientation: portrait);', ['at-rule:import', 'media:orientation']],
    [
      '@media (prefers-color-scheme: dark){a{b:c}}',
      [
        'at-rule:media',
        'media:prefers-color-scheme',
        'selector:type',
        'property:b',
        'keyword:c',
        'value:b:c',
      ],
    ],
    [
      '@-webkit-keyframes x{from{b:c}50%{b:c}}',
      [
        'at-rule:-webkit-keyframes',
        'property:b',
        'keyword:c',
        'value:b:c',
        'property:b',
        'keyword:c',
        'value:b:c',
      ],
    ],
    [
      '@font-face{font-family:x;src:url(y.woff)}',
      [
        'at-rule:font-face',
        'property:font-family',
        'keyword:x',
        'value:font-family:x',
        'property:src',
        'image:woff',
      ],
    ],
    ['<!-- a{} -->', ['selector:type']],
    ['}a{b:c', ['selector:type', 'property:b', 'keyword:c', 'value:b:c']],
    ['\\61{b:\\31px}', ['selector:type', 'property:b', 'keyword:1px', 'value:b:1px']],
    [';;:{}:;', []],
  ])('%s', (css, expected) => {
    expect(usesOfCss(css)).toEqual(expected)
  })

  it('reads style sheets that the parser gets in several pieces', () => {
    const css = `/*${' '.repeat(70_000)}*/a{display:flex}`
    const [warning] = htmlCheck(`\n<style>${css}</style>`)?.warnings ?? []
    expect(warning).toMatchObject({
      feature: { slug: 'css-comments' },
      where: { count: 1, positions: [{ line: 2, column: 8 }] },
    })
    expect(usesOfCss(css)).toContain('value:display:flex')
  })
})

describe('the check of a mail’s HTML', () => {
  const check = (html: string) => {
    const checked = htmlCheck(html)
    if (checked === null) throw new Error('the HTML is too complex')
    return checked
  }

  it('finds nothing in HTML that uses nothing', () => {
    expect(check('Hello')).toEqual({ supported_percent: 100, warnings: [] })
  })

  it('counts a feature by what is known of it: the mean of clients with full, partial and no support', () => {
    const feature = MAIL_FEATURES.find(({ slug }) => slug === 'html-dialog')
    const points = new Map([
      ['y', 1],
      ['a', 0.5],
      ['n', 0],
    ])
    const known = Array.from(feature?.support ?? '').flatMap((each) => points.get(each) ?? [])
    const mean = known.reduce((sum, each) => sum + each, 0) / known.length
    const { supported_percent, warnings } = check('x<dialog>\n<dialog></dialog></dialog>')
    expect(supported_percent).toBeCloseTo(100 * mean, 1)
    expect(warnings).toMatchObject([
      {
        feature: {
          slug: 'html-dialog',
          title: '<dialog> element',
          url: 'https://www.caniemail.com/features/html-dialog/',
        },
        where: {
          count: 2,
          positions: [
            { line: 1, column: 2 },
            { line: 2, column: 1 },
          ],
        },
      },
    ])
    const { clients } = warnings[0] ?? { clients: [] }
    expect(clients.filter(({ support }) => support === 'none')).toHaveLength(
      known.filter((each) => each === 0).length,
    )
    expect(clients.filter(({ support }) => support === 'partial')).toHaveLength(
      known.filter((each) => each === 0.5).length,
    )
  })

  it('says which clients support a feature, with notes', () => {
    const { warnings } = check('<div style="display:flex">')
    const flex = warnings.find(({ feature }) => feature.slug === 'css-display-flex')
    expect(flex?.clients).toContainEqual({ name: 'Outlook (Windows)', support: 'none', notes: [] })
    expect(flex?.clients.map(({ name }) => name)).not.toContain('Apple Mail (iOS)')
    const { clients = [] } =
      check('<b style="background-image:url(a.png)">').warnings.find(
        ({ feature }) => feature.slug === 'css-background-image',
      ) ?? {}
    expect(clients.find(({ name }) => name === 'Yahoo! Mail (iOS)')).toEqual({
      name: 'Yahoo! Mail (iOS)',
      support: 'partial',
      notes: ['Partial. Does not support multiple values. The comma between two values is removed.'],
    })
  })

  it('knows what each client of each feature supports', () => {
    for (const { slug, uses, support, notes } of MAIL_FEATURES) {
      expect({ slug, support }).toEqual({ slug, support: expect.stringMatching(/^[yanu]+$/) as unknown })
      expect({ slug, clients: support.length }).toEqual({ slug, clients: MAIL_CLIENTS.length })
      expect(uses.length).toBeGreaterThan(0)
      for (const [note, clients] of notes) {
        expect(note).toMatch(/\S/)
        for (const client of clients) expect(support.charAt(client)).toMatch(/[an]/)
      }
    }
  })

  it('lists at most ten positions of a feature', () => {
    const [warning] = check('<dialog></dialog>'.repeat(1_000)).warnings
    expect(warning?.where.count).toBe(1_000)
    expect(warning?.where.positions).toHaveLength(10)
  })

  it('refuses elements that are nested too deep', () => {
    expect(htmlCheck('<div>'.repeat(100_000))).toBeNull()
    expect(htmlCheck('<div>'.repeat(1_000))).not.toBeNull()
  })

  /** Each would take hours in quadratic time, or much memory as a tree or a list of tokens. */
  const large = (text: string) => text.repeat(Math.ceil(2_000_000 / text.length))
  it.each([
    ['elements', large('<b>x</b>')],
    ['attributes', `<a ${large('b ')}>`],
    ['different attributes', `<a ${Array.from({ length: 200_000 }, (_, n) => `a${n}`).join(' ')}>`],
    ['ends of elements that are not open', '<div>'.repeat(990) + large('</x>')],
    ['comments that are not closed', large('<!--')],
    ['style attributes', large('<br style="a:b;c:1px">')],
    ['blocks that are not closed', `<style>${large('a{')}`],
    ['parentheses that are not closed', `<style>${large('a:not(')}`],
    ['brackets that are not closed', `<style>${large('[')}`],
    ['comments in CSS that are not closed', `<style>${large('/*')}`],
    ['a selector', `<style>${large('a.b ')}{}`],
    ['a declaration', `<style>a{b:${large('1px ')}`],
    ['an image', `<img src="${large('.')}">`],
    ['candidates of images', `<img srcset="${large('a.png 1x,')}">`],
  ])('reads many %s', (_, html) => {
    expect(htmlCheck(html)?.supported_percent).toBeGreaterThan(0)
  })
})
