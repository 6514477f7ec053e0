import fc from 'fast-check'
import type { Link } from '../message.js'
import { findLinks } from './links.js'
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
  // Addresses in angle brackets over several lines, and other text in angle brackets.
  {
    send: { text: `<${x}a/\r\n  b?c=\nd>, <${x}e f>\n<${x}g>` },
    expect: [`${x}a/b?c=d`, `${x}e`, `${x}g`].map(bare),
  },
  {
    send: { text: `[words](${x}a) **${x}b** [${x}c]: (${x}d)` },
    expect: ['a', 'b', 'c', 'd'].map((it) => bare(x + it)),
  },
  {
    send: { text: `HTTPS://X.example/A HTTP://y.example` },
    expect: [bare('HTTPS://X.example/A'), bare('HTTP://y.example')],
  },
  {
    send: { text: `${x}a에서, ${x}地図 ${x}?q=東京 ${x}bから ${x}cที่นี่ https://例え.example/テスト` },
    expect: [
      bare(`${x}a`),
      bare(`${x}地図`),
      bare(`${x}?q=東京`),
      bare(`${x}b`),
      bare(`${x}c`),
      bare('https://例え.example/テスト'),
    ],
  },
  {
    send: { text: `https://bücher.example/öffnung?tür=1…\u202c` },
    expect: [bare('https://bücher.example/öffnung?tür=1')],
  },
  { send: { text: `${x}a\u200b ${x}b\u2060` }, expect: [bare(`${x}a`), bare(`${x}b`)] },
  {
    send: {
      html: '<a href="//x.example/a">a</a><a href="/b">b</a><a href="c">c</a><a href="www.x.example">d</a>',
    },
    expect: [{ href: `${x}a`, text: 'a' }],
  },
  {
    send: { html: `<base href="${x}b/"><a href="//y.example">a</a><a href="?c">b</a><a href="#d">c</a>` },
    expect: [
      { href: 'https://y.example/', text: 'a' },
      { href: `${x}b/?c`, text: 'b' },
    ],
  },
  {
    send: {
      html: '<a href="data:text/html,x">a</a><a href="cid:x">b</a><a href="tel:1">c</a><a href="sms:1">d</a><a>e</a>',
    },
    expect: [],
  },
  // Conditional comments contain a version for one program. The version for the others is outside of them.
  {
    send: {
      html: `<!--[if mso]><v:roundrect href="${x}vml"><a href="${x}mso">Go</a></v:roundrect><![endif]--><!--[if !mso]><!-- --><a href="${x}">Go</a><!--<![endif]-->`,
    },
    expect: [{ href: x, text: 'Go' }],
  },
  { send: { html: `<![if !mso]><a href="${x}">Go</a><![endif]>` }, expect: [{ href: x, text: 'Go' }] },
  {
    send: { html: `<a href="${x}1">One <a href="${x}2">Two</a> three <a href="${x}4">Four` },
    expect: [
      { href: `${x}1`, text: 'One' },
      { href: `${x}2`, text: 'Two' },
      { href: `${x}4`, text: 'Four' },
    ],
  },
  {
    send: { html: `<a href="${x}"><table><tr><td>One</td><td>Two</td></tr></table></a>` },
    expect: [{ href: x, text: 'One Two' }],
  },
  {
    send: { html: `<a href="${x}"><span>S</span>ign&zwnj; in&#8203;</a>` },
    expect: [{ href: x, text: 'Sign in' }],
  },
  {
    send: { html: `<a href="${x}"><i hidden>&#8202;no</i>Yes<span style="font-size:0">no</span></a>` },
    expect: [{ href: x, text: 'Yes' }],
  },
  // A hidden link may be the one that phones show.
  {
    send: { html: `<div style="display:none"><a href="${x}">Go <b>on</b></a> more</div>` },
    expect: [{ href: x, text: 'Go on' }],
  },
  { send: { html: `<a href="${x}"><img src=a></a>` }, expect: [{ href: x, text: '' }] },
  { send: { html: `<p>${x}<wbr>a/<b>b</b>.</p>` }, expect: [bare(`${x}a/b`)] },
  {
    send: { html: `<a href="${x}?a=1&lt=2&amp;amp;b">E</a>`, text: `${x}?a=1&amp;b` },
    expect: [{ href: `${x}?a=1&lt=2&amp;b`, text: 'E' }, bare(`${x}?a=1&amp;b`)],
  },
]

test.each(cases)('$send', ({ send, expect: expected }) => expect(linksIn(send)).toEqual(expected))

test('links above the limit are left out and reported', () => {
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

test('any input gives links of http or https only, without repeats', () => {
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
  '<a',
  '<a href="',
  '<a href=//x>',
  '<p style="',
  '<p style="color:#fff;background:#fff">',
  '<p style=";:;">',
  '<td style="font-size:0">',
  '<!--[if mso]>',
  '<https://x\n',
  'https://x.example/에',
  'https://',
  '://',
  '&zwnj;',
  '\u200c',
  '<pre>\n',
]

// In more than linear time, this would not end.
test.each(hostile)('megabytes of %j are read', (piece) => {
  const sent = piece.repeat(2_000_000 / piece.length)
  for (const { href } of linksIn({ html: sent, text: sent })) expect(href).toMatch(/^https?:/)
})

test('links that would take more memory than the mail are left out and reported', () => {
  const base = `<base href="https://x.example/${'a/'.repeat(4_000)}">`
  const { links, areLinksCut } = readHtml(base + '<a href=y>y</a>'.repeat(10_000))
  const kept = links.reduce((sum, { href }) => sum + href.length, 0)
  expect(kept).toBeLessThan(5_000_000)
  expect(areLinksCut).toBe(true)
  expect(readHtml('<a href="https://x.example/">x</a>').areLinksCut).toBe(false)
})
