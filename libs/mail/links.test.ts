import fc from 'fast-check'
import { findLinks } from './links.js'
import type { Link } from './message.js'
import { readHtml } from './visible-text.js'

interface Sent {
  html?: string
  text?: string
}

const linksIn = ({ html, text }: Sent, maxLinks = 1_000) =>
  findLinks(html === undefined ? null : readHtml(html), text ?? null, maxLinks).found

const bare = (href: string): Link => ({ href, text: null })
const x = 'https://x.example/'

const cases: { send: Sent; expect: Link[] }[] = [
  {
    send: { html: `<a href="${x}?a=1&amp;b=2&copy=3&#38;c">Go</a>` },
    expect: [{ href: `${x}?a=1&b=2&copy=3&c`, text: 'Go' }],
  },
  {
    send: { html: `<a href=${x}>\n Sign\n\t<b>in</b>&nbsp;now </a>` },
    expect: [{ href: x, text: 'Sign in now' }],
  },
  {
    send: { html: `<a href="${x}"><div>One</div><div>Two</div></a>` },
    expect: [{ href: x, text: 'One Two' }],
  },
  { send: { html: `<a href=" ${x}a\nb ">Go</a>` }, expect: [{ href: `${x}ab`, text: 'Go' }] },
  { send: { html: `<a href="${x}"><img src=a alt="Logo"></a>` }, expect: [{ href: x, text: 'Logo' }] },
  {
    send: { html: `<a href="${x}"><img src=a></a><a href="${x}">Home</a>` },
    expect: [{ href: x, text: 'Home' }],
  },
  { send: { html: `<map><area href="${x}" alt="Map"></map>` }, expect: [{ href: x, text: 'Map' }] },
  {
    send: { html: `<form action="${x}"><input name=a><button>Send <i>it</i></button></form>` },
    expect: [{ href: x, text: 'Send it' }],
  },
  {
    send: { html: `<form action="${x}"><input type=submit value=Send></form>` },
    expect: [{ href: x, text: 'Send' }],
  },
  {
    send: {
      html: '<a href="mailto:a@b.example">a</a><a href="#top">b</a><a name=c>c</a><a href="javascript:x">d</a>',
    },
    expect: [],
  },
  { send: { html: '<a href="/verify">a</a>' }, expect: [] },
  {
    send: { html: `<base href="${x}base/"><a href="verify">a</a>` },
    expect: [{ href: `${x}base/verify`, text: 'a' }],
  },
  {
    send: { html: '<a href="https://bücher.example/ü">Bücher</a>' },
    expect: [{ href: 'https://bücher.example/ü', text: 'Bücher' }],
  },
  {
    send: { html: '<a href="HTTPS://X.example/">a</a>' },
    expect: [{ href: 'HTTPS://X.example/', text: 'a' }],
  },
  {
    send: { html: '<a href="https://track.example/1">https://x.example/</a> or http://y.example' },
    expect: [{ href: 'https://track.example/1', text: 'https://x.example/' }, bare('http://y.example')],
  },
  {
    send: { html: `<a href="${x}1">One`, text: `${x}2 ${x}1` },
    expect: [{ href: `${x}1`, text: 'One' }, bare(`${x}2`)],
  },
  {
    send: { text: `See ${x}a. And (${x}b), <${x}c>; "${x}d"!` },
    expect: [bare(`${x}a`), bare(`${x}b`), bare(`${x}c`), bare(`${x}d`)],
  },
  {
    send: { text: `${x}A_(b) [go](${x}c) ${x}d(e)f). **${x}g**` },
    expect: [bare(`${x}A_(b)`), bare(`${x}c`), bare(`${x}d(e)f`), bare(`${x}g`)],
  },
  { send: { text: `请点击：${x}v?t=a_b-，然后` }, expect: [bare(`${x}v?t=a_b-`)] },
  { send: { text: `${x}?utm_source=mail&gclid=1#top` }, expect: [bare(`${x}?utm_source=mail&gclid=1#top`)] },
  { send: { text: 'ftp://x.example https:// http://[ www.x.example' }, expect: [] },
]

test.each(cases)('$send', ({ send, expect: expected }) => expect(linksIn(send)).toEqual(expected))

test('what is past the limit is left out, and said', () => {
  const text = `${x}1 ${x}2 ${x}1 ${x}3`
  expect(findLinks(null, text, 2)).toEqual({ found: [bare(`${x}1`), bare(`${x}2`)], isCut: true })
  expect(findLinks(null, text, 3).isCut).toBe(false)
})

const markup = fc.constantFrom(
  '<a href="',
  'https://x.example/',
  'http://ü',
  '">',
  '</a>',
  '<b>',
  ' ',
  ')',
  '(',
  '.',
  '<form action=',
  '<',
  '&amp;',
)

test('whatever is sent, links lead to http or https, and none comes twice', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(markup).map((list) => list.join('')),
      ),
      (sent) => {
        const hrefs = linksIn({ html: sent, text: sent }).map(({ href }) => href)
        for (const href of hrefs) expect(new URL(href).protocol).toMatch(/^https?:$/)
        expect(new Set(hrefs).size).toBe(hrefs.length)
      },
    ),
  )
})

const visible: { send: string; expect: string }[] = [
  { send: '<p>One</p><p>Two<br>Three</p>', expect: 'One\nTwo\nThree' },
  { send: '<b>49</b><i>32</i><span>01</span>', expect: '493201' },
  { send: ' a \n b&nbsp;&nbsp;c &amp; d ', expect: 'a b c & d' },
  {
    send: '<head><title>T</title><style>p{}</style></head><body>B<script>s</script><!-- c --></body>',
    expect: 'B',
  },
  { send: '<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>', expect: '1 2\n3' },
  { send: '<pre>a\nb</pre>c', expect: 'a\nb\nc' },
  {
    send: '<div style="color:red; display: none"><p>hidden</p></div><p hidden>too</p>shown',
    expect: 'shown',
  },
  { send: '12&#8203;34&shy;56', expect: '123456' },
  { send: 'a<', expect: 'a<' },
  { send: '', expect: '' },
]

test.each(visible)('visible of $send', ({ send, expect: expected }) =>
  expect(readHtml(send).text).toBe(expected),
)

const hostile = [
  '<div>',
  '</p>',
  '<a href=https://x.example>',
  '<',
  '<!--',
  '&',
  ' ',
  '(',
  'https://x.example/(',
  '<form action=http://x>',
  '</x>',
  '<div></x>',
]

// In more than linear time they would not come to an end.
test.each(hostile)('megabytes of %j are read', (piece) => {
  const sent = piece.repeat(3_000_000 / piece.length)
  for (const { href } of linksIn({ html: sent, text: sent })) expect(href).toMatch(/^https?:/)
})

test('links that would take more memory than the mail are cut, and it is said', () => {
  const base = `<base href="https://x.example/${'a/'.repeat(4_000)}">`
  const { links, areLinksCut } = readHtml(base + '<a href=y>y</a>'.repeat(10_000))
  const kept = links.reduce((sum, { href }) => sum + href.length, 0)
  expect(kept).toBeLessThan(5_000_000)
  expect(areLinksCut).toBe(true)
  expect(readHtml('<a href="https://x.example/">x</a>').areLinksCut).toBe(false)
})
