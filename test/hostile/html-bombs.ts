import { fill, numbered, sourceOf, type Bomb } from './bomb.js'

function html(unit: (bytes: number) => string, before = '', after = ''): Bomb {
  return (bytes) => sourceOf(['Content-Type: text/html; charset=utf-8'], before + unit(bytes) + after)
}

function repeated(unit: string): (bytes: number) => string {
  return (bytes) => fill(unit, bytes)
}

/** Bombs of HTML elements, attributes, entities and visible text. */
export const HTML_BOMBS: Readonly<Record<string, Bomb>> = {
  'nested tables': html(repeated('<table><tr><td>')),
  'nested divs': html(repeated('<div>')),
  'nested anchors': html(repeated('<a href=https://a.b>')),
  'nested formats': html(repeated('<b><i><u>')),
  attributes: html((bytes) => numbered(bytes, (n) => ` a${n}=b`), '<p', '>x'),
  'one attribute often': html(repeated(' a=b'), '<p', '>x'),
  'an attribute without end': html(repeated('x'), '<p title="'),
  'a style without end': html(repeated('display '), '<p style="', '">x'),
  'a style of semicolons': html(repeated(';display:'), '<p style="', '">x'),
  anchors: html((bytes) => numbered(bytes, (n) => `<a href="https://a.b/${n}">x</a>`)),
  'anchors without address': html(repeated('<a>x</a>')),
  'anchors left open': html(
    (bytes) => numbered(bytes, (n) => `<a href="/${n}">x`),
    '<base href="https://a.b/">',
  ),
  'long bases': html(repeated('<a href=x>'), `<base href="https://a.b/${'x'.repeat(8_000)}/">`),
  'closing tags': html(repeated('</p>')),
  'closing tags of none': html(repeated('</x>'), '<div>'.repeat(900)),
  paragraphs: html(repeated('<p>x')),
  'list items': html(repeated('<li>')),
  'tags unclosed': html(repeated('<')),
  'tags with names unclosed': html(repeated('<a ')),
  'a tag name': html(repeated('a'), '<'),
  comments: html(repeated('<!--x-->')),
  'comments unclosed': html(repeated('<!--')),
  'a comment of hyphens': html(repeated('-'), '<!--'),
  declarations: html(repeated('<!x>')),
  CDATA: html(repeated('<![CDATA[')),
  'scripts unclosed': html(repeated('</scrip'), '<script>'),
  styles: html(repeated('<style>x</style>')),
  'a title of entities': html(repeated('&amp;'), '<title>'),
  entities: html(repeated('&amp;')),
  'entities that grow': html(repeated('&NotEqualTilde;')),
  'entities unclosed': html(repeated('&am')),
  'entities in attributes': html(repeated('&amp'), '<a href="https://a.b/?', '">x</a>'),
  'numeric entities': html(repeated('&#x1F600;')),
  'digits of an entity': html(repeated('1'), '&#'),
  'an image in a data URI': html(repeated('QUJD'), '<img src="data:image/png;base64,', '">x'),
  'images in data URIs': html((bytes) =>
    fill(`<img src="data:image/png;base64,${'QUJD'.repeat(1_000)}">`, bytes),
  ),
  'a link in a data URI': html(repeated('QUJD'), '<a href="data:text/html;base64,', '">x</a>'),
  'alternatives of images': html(repeated('<img alt="x y">'), '<a href="https://a.b/">', '</a>'),
  forms: html(repeated('<form action="https://a.b"><button>x</button>')),
  'nested buttons': html(repeated('<button>x')),
  'preformatted lines': html(repeated('\n'), '<pre>'),
  'nested pre': html(repeated('<pre>\nx ')),
  'hidden elements': html(repeated('<p hidden>x')),
  'white space in HTML': html(repeated(' \n\t')),
  'invisible characters': html(repeated('\u200b\u00ad')),
  'codes in cells': html(repeated('<td>1</td>')),
  'codes in spans': html(repeated('<span>4</span>')),
  'links in HTML text': html((bytes) => numbered(bytes, (n) => `https://a.b/${n} `)),
  svg: html(repeated('<svg><math>')),
  'uppercase tags': html(repeated('<TABLE><TR><TD>X')),
}
