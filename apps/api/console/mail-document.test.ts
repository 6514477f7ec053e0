import { tokenize, TokenType } from '@csstools/css-tokenizer'
import fc from 'fast-check'
import { defaultTreeAdapter as nodes, parse, type DefaultTreeAdapterTypes } from 'parse5'
import { ELEMENTS, HtmlTooComplexError, mailDocument, verifyDocument } from './mail-document.js'
import { dataUrlsOf } from './mail-images.js'
import { styleBreakout } from './style-breakouts.test-support.js'

const PNG = 'data:image/png;base64,iVBORw0KGgo='
const LONG_WORD = 'Donaudampfschifffahrtsgesellschaft'
const inlineImages = new Map([
  ['cid:logo@app.example', PNG],
  ['https://app.example/i/logo.png', PNG],
  ['thismessage:/l%C3%B6go%201.png', PNG],
])

function show(html: string, isRemoteAllowed = false) {
  return mailDocument({ html, inlineImages, isRemoteAllowed, baseUrl: 'thismessage:/' })
}

/** What the body of the document has. */
function bodyOf(html: string, isRemoteAllowed = false): string {
  const { document } = show(html, isRemoteAllowed)
  const [, body = ''] =
    /^<!doctype html><html style="[^"]*"><head><\/head><body>(.*)<\/body><\/html>$/s.exec(document) ?? []
  return body
}

const link = (href: string, text: string) =>
  `<a href="${href}" target="_blank" rel="noopener noreferrer" title="${href}">${text}</a>`

describe('the document of a mail', () => {
  it.each([
    // What an ordinary mail has is kept.
    ['<p class="a" style="color:red">Hi <b>you</b></p>', '<p class="a" style="color:red">Hi <b>you</b></p>'],
    [
      '<table width=600 cellpadding=0><tr><td bgcolor="#fff">x</table>',
      '<table width="600" cellpadding="0"><tbody><tr><td bgcolor="#fff">x</td></tr></tbody></table>',
    ],
    ['<center><font color=red>x</font></center>', '<center><font color="red">x</font></center>'],
    ['<pre>\n\nx</pre>', '<pre>\n\nx</pre>'],
    // Other elements are replaced, or dropped with their content.
    ['<o:p>x</o:p><video src=v>no video</video>', '<span>x</span><span>no video</span>'],
    [
      '<form action=x>Name <input name=a><button onclick=x>Go</button></form>',
      '<span>Name <span>Go</span></span>',
    ],
    ['<script>x</script><iframe src=x>y</iframe><object data=x>y</object><embed src=x>z', 'z'],
    ['<meta http-equiv=refresh content="0;url=x"><base href=x><link rel=stylesheet href=x>y', 'y'],
    ['<svg><a xlink:href="javascript:x"><text>x</text></a></svg><math><mtext>y</mtext></math>z', 'z'],
    ['<p><template>x</template><noscript><b title="</noscript><img src=x>">y</b></noscript>z', '<p>z</p>'],
    ['<!-- <img src=x onerror=x> --><![CDATA[x]]>y<!--[if mso]>z<![endif]-->', 'y'],
    // Attributes that are not listed are dropped.
    [
      '<p onclick=x id=a title=b data-x=c hidden contenteditable autofocus tabindex=1>x</p>',
      '<p id="a">x</p>',
    ],
    // Links.
    ['<a href="https://x.example/a?b&c" ping=x download>x</a>', link('https://x.example/a?b&amp;c', 'x')],
    ['<a href="//bank.example" title="https://other.example">x</a>', link('https://bank.example/', 'x')],
    [
      '<a href="https://bÄnk.example\t/ä"><b title=y>x</b></a>',
      link('https://xn--bnk-qla.example/%C3%A4', '<b>x</b>'),
    ],
    ['<a href="mailto:a@b.example">x</a>', link('mailto:a@b.example', 'x')],
    [
      '<a href="java\nscript:x">x</a><a href=" &#1;javascript:x">y</a><a href=data:text/html,x>z</a>',
      '<a>x</a><a>y</a><a>z</a>',
    ],
    ['<a href="/console">x</a><a href="#top">y</a><a href="file:///etc">z</a>', '<a>x</a><a>y</a><a>z</a>'],
    // Images.
    [
      '<img src="cid:logo@app.example" alt=Logo><img src="CID:logo%40app.example">',
      `<img src="${PNG}" alt="Logo"><img src="${PNG}">`,
    ],
    [
      '<img src="https://APP.example/i/../i/logo.png"><img src="//app.example/i/logo.png"><img src="lögo 1.png">',
      `<img src="${PNG}"><img src="${PNG}"><img src="${PNG}">`,
    ],
    [
      '<base target=x><base href="https://app.example/i/"><base href="https://x.example"><img src=logo.png><img src=a.png>',
      `<img src="${PNG}"><img>`,
    ],
    ['<img src="cid:other"><img src="cid:../../etc/passwd"><img src="cid:%zz">', '<img><img><img>'],
    [`<img src="${PNG}"><td background="${PNG}">`, `<img src="${PNG}">`],
    [
      '<img src="data:image/svg+xml;base64,PHN2Zy8+"><img src="data:text/html;base64,PHN2Zy8+">',
      '<img><img>',
    ],
    ['<img src="data:image/png,<svg onload=x>"><img src="blob:x"><img src="a.png">', '<img><img><img>'],
    // Long words
    [
      `<p>short <b style="color:red">${LONG_WORD}</b></p>`,
      `<p>short <b style="overflow-wrap:anywhere;color:red">${LONG_WORD}</b></p>`,
    ],
    // Styles.
    [
      '<p style="columns:9;Column-Width:1px;c\\6flumn-count:9">x</p>',
      '<p style=" none :9; none :1px; none :9">x</p>',
    ],
    [
      'x<style>.columns{filter:blur(9px)}@keyframes k{to{top:0}}</style>',
      'x<style>.columns{filter: none } </style>',
    ],
    [
      '<p style="background:url(cid:logo@app.example)">x</p>',
      `<p style="background:url(&quot;${PNG}&quot;)">x</p>`,
    ],
    [
      '<p style="background:u\\72l(http://x.example/);width:expression(alert(1))">x</p>',
      '<p style="background: none ;width: none ">x</p>',
    ],
    [
      'x<style>@import "x.css";@font-face{src:url(x)}@media print{p{color:red}}</style>',
      'x<style>  @media print{p{color:red}}</style>',
    ],
    ['x<style>a{b:url(x)/*</style><img src=x>', 'x<style>a{b: none /**/</style><img>'],
    [
      'x<style>a{}</style@import "x";><form>y</form></style>',
      'x<style>a{} none /style > none form>y none /form></style>',
    ],
    ['x<style>a{}</style"bad\n><form></style>', 'x<style>a{} none /style none \n> none form></style>'],
    [
      'x<style><!-- a{content:"</p>\\<\\\\<"}\\<{} --></style>',
      'x<style>  a{content:"\\3c /p>\\3c \\\\\\3c "}\\3c {} --></style>',
    ],
    ['<p style="a:b<c;d:\'<\'">x</p>', '<p style="a:b none c;d:\'\\3c \'">x</p>'],
    [
      "x<style>a{b:image-set('http://x.example/1' 1x);c:u/**/rl(x);d:'\\</style>",
      "x<style>a{b: none ;c:u/**/ none ;d:'\\</style>",
    ],
  ])('of %s has %s', (html, body) => {
    expect(bodyOf(html)).toBe(body)
  })

  it('keeps styles of the head and of the body element', () => {
    const { document } = show('<head><title>x</title><style>p{}</style></head><body bgcolor=red onload=x>y')
    expect(document).toBe(
      '<!doctype html><html style="overflow-wrap:break-word"><head><style>p{}</style></head><body bgcolor="red">y</body></html>',
    )
  })

  it.each([
    ['<meta name=color-scheme content="light dark">', 'overflow-wrap:break-word;color-scheme:light dark'],
    ['<meta name=Color-Scheme content="only Dark ">', 'overflow-wrap:break-word;color-scheme:only Dark'],
    [
      '<html style="color:red"><meta name=color-scheme content=dark><meta name=color-scheme content=light>',
      'overflow-wrap:break-word;color-scheme:dark;color:red',
    ],
    ['<meta name=color-scheme content="dark;color:red">', 'overflow-wrap:break-word'],
    ['<meta name=color-scheme content="darklight">', 'overflow-wrap:break-word'],
    ['<meta name=x content="dark">', 'overflow-wrap:break-word'],
  ])('has the color scheme that %s declares', (html, style) => {
    expect(show(html).document).toContain(`<!doctype html><html style="${style}"><head>`)
  })

  it('counts blocked images of the web, and loads them if that is allowed', () => {
    const html =
      '<img src="https://x.example/1"><img src="https://x.example/1"><table background="//x.example/2"></table>' +
      `<p style="background:url('http://x.example/3?\\\\&quot;)')">y</p><style>p{b:url(https://x.example/4)}</style>`
    expect(show(html).blocked).toBe(4)
    expect(show(html).document).not.toContain('x.example')
    expect(show(html, true).blocked).toBe(0)
    expect(bodyOf(html, true)).toBe(
      '<img src="https://x.example/1"><img src="https://x.example/1"><table background="https://x.example/2"></table>' +
        '<p style="background:url(&quot;http://x.example/3?%5C%22)&quot;)">y</p><style>p{b:url("https://x.example/4")}</style>',
    )
  })

  it('loads nothing else of the web, even if images are allowed', () => {
    const html =
      '<link rel=stylesheet href=https://x.example><style>@import url(https://x.example)</style>' +
      '<iframe src=https://x.example></iframe><script src=https://x.example></script>' +
      '<style>@font-face{font-family:x;src:url(https://x.example)}</style><video poster=https://x.example>'
    expect(show(html, true).document).not.toContain('x.example')
  })

  it('has images up to a total size', () => {
    const image = `data:image/png;base64,${'A'.repeat(4_000_000)}`
    const html = `<img src="${image}">` + '<img src=cid:large>'.repeat(1_000)
    const { document } = mailDocument({
      html,
      inlineImages: new Map([['cid:large', image]]),
      isRemoteAllowed: false,
    })
    expect(document.match(/data:/g)).toHaveLength(3)
    expect(document.length).toBeLessThan(15_000_000)
  })

  it('decodes and counts only the parts that it shows', () => {
    const decoded: string[] = []
    const part = (name: string, size: number) => ({
      urls: [`cid:${name}`],
      decode() {
        decoded.push(name)
        return Buffer.concat([Buffer.from('GIF89a'), Buffer.alloc(size)])
      },
    })
    const { document } = mailDocument({
      html: '<img src=cid:shown>'.repeat(2),
      inlineImages: dataUrlsOf([part('hidden', 9_000_000), part('shown', 2_000_000)]),
      isRemoteAllowed: false,
    })
    expect(document.match(/data:/g)).toHaveLength(2)
    expect(decoded).toEqual(['shown'])
  })

  it.each([
    ['nested deep', '<div>'.repeat(100_000)],
    ['with many elements', '<br>'.repeat(200_000)],
    ['with many comments', '<!>'.repeat(200_000)],
    ['with formatting that is opened again in each paragraph', '<p><b id=x>'.repeat(100_000)],
  ])('is refused for HTML %s', (_, html) => {
    expect(() => show(html)).toThrow(HtmlTooComplexError)
  })

  it('has styles up to a total size', () => {
    const css = 'p{color:red}'.repeat(40_000)
    expect(bodyOf(`x<style>${css}</style><style>${css}</style>`)).toBe(
      `x<style>${css}</style><style></style>`,
    )
  })
})

describe('the check of a sanitised document', () => {
  it.each([
    ['an element', '<p>x<form>', 'an element "form"'],
    ['an element of SVG', '<svg><a>', 'an element "svg"'],
    ['an attribute', '<p onclick=x>', 'an attribute "onclick"'],
    ['a comment', '<p><!-- -->', 'a comment'],
  ])('finds %s that the sanitiser never writes', (_, html, found) => {
    expect(() => verifyDocument(html)).toThrow(`the sanitised HTML has ${found}`)
  })
})

/** Pieces that change how a parser reads what follows them. */
const PIECES = [
  ...'a b p div table tr td caption form button select option svg math mtext mglyph foreignObject desc title textarea'.split(
    ' ',
  ),
  ...'style template noscript script iframe li dd pre img body head frameset noembed xmp plaintext listing'.split(
    ' ',
  ),
  ...'annotation-xml font nobr object col ruby rt br input'.split(' '),
].flatMap((name) => [
  `<${name}>`,
  `</${name}>`,
  `<${name}/>`,
  `<${name} title="</${name}><img src=x onerror=x>" href="javascript:x" onload=x style="a:url(http://x/)">`,
])
const soup = fc
  .array(
    fc.constantFrom(
      ...PIECES,
      '<!--',
      '-->',
      '<![CDATA[',
      ']]>',
      'x',
      '\n',
      '&lt;img src=x&gt;',
      '"',
      '<',
      '&#0;',
    ),
    {
      maxLength: 30,
    },
  )
  .map((pieces) => pieces.join(''))

/** HTML that is nested correctly. */
const { tree: nested } = fc.letrec<{ tree: string }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'medium' },
    fc.constantFrom(
      'x',
      ' ',
      '&amp;',
      '<br>',
      `<img src="${PNG}">`,
      '<style>a{b:url(x)}</style>',
      '<script>x</script>',
    ),
    fc
      .tuple(
        fc.constantFrom('div', 'span', 'b', 'i onclick=x', 'center', 'blockquote style="a:url(x)"'),
        fc.array(tie('tree'), { maxLength: 4 }),
      )
      .map(([name, children]) => `<${name}>${children.join('')}</${name.split(' ')[0]}>`),
    tie('tree').map((child) => `<table><tbody><tr><td>${child}</td></tr></tbody></table>`),
  ),
}))

const css = fc
  .array(
    fc.constantFrom(
      ...[
        'url(',
        'URL("x")',
        'u\\72l(',
        'u',
        'rl(',
        '/*',
        '*/',
        '"',
        "'",
        '\\',
        '\n',
        '(',
        ')',
        '{',
        '}',
        ';',
        ':',
        'x',
      ],
      ...[
        '@import',
        '@\\69mport',
        '@media',
        '@',
        'rgb(',
        'image-set(',
        'src(',
        'expression(',
        'http://x/',
        '</',
        '<',
        '\\<',
        '</style',
        '>',
        'none',
        ' ',
        '<!--',
      ],
    ),
    { maxLength: 30 },
  )
  .map((pieces) => pieces.join(''))

describe('for any HTML, the document', () => {
  it('has only elements and attributes that are harmless, if a browser parses it again', () => {
    fc.assert(
      fc.property(soup, (html) => {
        const { document } = show(html)
        for (const { tagName, namespaceURI, attrs } of elementsOf(
          parse(document, { scriptingEnabled: false }),
        )) {
          expect(namespaceURI).toBe('http://www.w3.org/1999/xhtml')
          expect(tagName).not.toMatch(
            /^(script|noscript|template|i?frame|frameset|object|embed|applet|meta|base|link|form|input|select|textarea|button|svg|math|title|xmp|plaintext)$/,
          )
          for (const { name, value } of attrs) {
            expect(name).not.toMatch(/^(on|src$|href$|action|formaction|title|ping|target)/)
            expect(value).not.toContain('http')
          }
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('has no element from within a style', () => {
    fc.assert(
      fc.property(styleBreakout, (html) => {
        const { document } = show(html)
        for (const [, css = ''] of document.matchAll(/<style[^>]*>(.*?)<\/style>/gs))
          expect(css).not.toContain('<')
        for (const { tagName } of elementsOf(parse(document, { scriptingEnabled: false })))
          expect(ELEMENTS).toContain(tagName)
      }),
      { numRuns: 5_000 },
    )
  })

  it('keeps its text if it is sanitised again', () => {
    const textOf = (html: string) => html.replaceAll(/<[^>]*>/g, '').replaceAll('\n', '')
    fc.assert(
      fc.property(soup, (html) => {
        const { document } = show(html)
        expect(textOf(show(document).document)).toBe(textOf(document))
      }),
      { numRuns: 2_000 },
    )
  })

  it('does not change if it is sanitised again, if the HTML was nested correctly', () => {
    fc.assert(
      fc.property(nested, (html) => {
        const body = bodyOf(html)
        expect(bodyOf(show(html).document)).toBe(body)
      }),
      { numRuns: 2_000 },
    )
  })

  it('has no style that loads anything, and does not change it if it is sanitised again', () => {
    fc.assert(
      fc.property(css, (text) => {
        const once = bodyOf(`x<style>${text}</style>`)
        const safe = /^x<style>(.*?)<\/style>/s.exec(once)?.[1] ?? ''
        expect(bodyOf(`x<style>${safe}</style>`)).toBe(`x<style>${safe}</style>`)
        expect(safe).not.toContain('<')
        for (const token of tokenize({ css: safe })) {
          expect([TokenType.URL, TokenType.BadURL]).not.toContain(token[0])
          if (token[0] === TokenType.Function) expect(token[4].value).toBe('rgb')
          if (token[0] === TokenType.AtKeyword) expect(token[4].value).toBe('media')
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

function* elementsOf(parent: DefaultTreeAdapterTypes.ParentNode): Generator<DefaultTreeAdapterTypes.Element> {
  for (const child of parent.childNodes) {
    if (!nodes.isElementNode(child)) continue
    yield child
    yield* elementsOf(child)
  }
}
