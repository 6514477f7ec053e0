import { bareUrls } from './links.js'

/* Addresses in text parts: forms of markup and punctuation of all scripts, each with addresses of many kinds. */

const other = 'https://other.example/w?k=2'
const addresses = [
  'https://app.example',
  'http://x.example:8080',
  'https://例え.example',
  'HTTPS://X.EXAMPLE',
]
  .flatMap((host) =>
    (
      '/ /a /a/b-c_d /A_(b) /?x=1&y=2 /confirm/7?expires=1795775229&signature=c0ffee /a#frag /?f[a]=1&f[b]=2 ' +
      '/t=abc= /?q=%D8%9F&z=~a /?next=https://z.example /?next=https%3A%2F%2Fz.example /v;p=1,2'
    )
      .split(' ')
      .map((rest) => host + rest),
  )
  .concat('http://[2001:db8::1]:8080/a', 'https://x.example')

/** The addresses for which the text does not give exactly the expected ones, each once. */
const missed = (text: (address: string) => string, expected: (address: string) => string[]) =>
  addresses.filter((address) => {
    const found = new Set([...bareUrls(text(address))].map(({ href }) => href))
    return [...found].join(' ') !== expected(address).join(' ')
  })

// `u` stands for each address, `v` for another one.
test.each([
  ...['[u](u)', '[u][1]', '[w][1]\n\n[1]: u', '<u>', '[w](u)', '![w](u)', '[w](<u>)', '[w](u "w")', '**u**'],
  ...['_u_', '~~u~~', '`u`', "'u'", '"u"', '{u}', '(u)', '(see u).', '(u)-Link', '[u]', '[[u]]', '[[u][w]]'],
  ...['[url]u[/url]', '[URL=u]w[/URL]', '[url="u"]w[/url]', '[img]u[/img]', '[b]u[/b]', '[w|u]', '<u|w>'],
  ...['<a href="u">u</a>', "<a href='u'>w</a>", 'link=u', 'Link:u', 'u[two words]', '(u)[w]', 'u\tw', 'u\nw'],
])('%s gives its address once', (form) => {
  expect(
    missed(
      (address) => form.replace(/\bu\b|_u_/g, (found) => found.replace('u', address)),
      (address) => [address],
    ),
  ).toEqual([])
})

test.each([
  ...[
    '[u](v)',
    '![u](v)',
    '[url=u]v[/url]',
    'u,v',
    'u;v',
    'u, v',
    'u|v',
    '<u>,<v>',
    "'u','v'",
    'u、v',
    'u،v',
  ],
  ...[
    '(u)(v)',
    'u(v)',
    '[![w](u)](v)',
    '[w](u)[w](v)',
    '[w][u][v]',
    'u\u3000v',
    'u—v',
    'u；v',
    'u→v',
    'u·v',
    'u•v',
    '[u](<v>)',
  ],
])('%s gives both addresses', (form) => {
  expect(
    missed(
      (address) => form.replace(/\b[uv]\b/g, (found) => (found === 'u' ? address : other)),
      (address) => [address, other],
    ),
  ).toEqual([])
})

const ASCII_ENDS = ['.', ',', ';', ':', '!', '?', '...', '?!', ')', '"', ').', "'", '].']
const ENDS = Array.from(
  '،؟؛۔।॥。，、？！；：．…—»”“’』）】།።፣፤፧၊။។៕։՝՞՜;·׃״׳᠃᠂‽⸮‚–・〜•߹܀๏๚๛꓿\u200f\u061c\u00ad',
)
const SENTENCES = [
  'Siehe @ und',
  'افتح @ ثم',
  'פתחו @ ואז',
  'यहाँ @ फिर',
  '여기 @ 에',
  'См. @ и',
  'ክፈት @ ከዚያ',
  '@',
]

test.each(['', ...ASCII_ENDS, ...ENDS])('an address ends at %j and a space', (end) => {
  for (const sentence of SENTENCES) {
    expect(
      missed(
        (address) => sentence.replace('@', address + end),
        (address) => [address],
      ),
    ).toEqual([])
  }
})

const UNSPACED = [
  'เปิด@แล้ว',
  'ເປີດ@ແລ້ວ',
  'បើក@រួច',
  'ဖွင့်@ပြီး',
  '詳しくは@をご覧',
  '请点击@然后',
  '여기@에서',
  '👉@👈',
]

test.each(['', ',', ';', '!', ')', ...Array.from('،؟؛۔।。，、？！；：．…—»”』）】།።។။')])(
  'an address ends at %j without a space',
  (end) => {
    for (const sentence of UNSPACED) {
      expect(
        missed(
          (address) => sentence.replace('@', address + end),
          (address) => [address],
        ).filter((address) => /\w$/.test(address) || end === ')'),
      ).toEqual([])
    }
  },
)

test('letters of all scripts belong to an address after a delimiter', () => {
  const text =
    'https://x.example/地図 https://x.example/?q=東京 https://x.example/L’Aquila https://x.example/a–b'
  expect([...bareUrls(text)].map(({ href }) => href)).toEqual(text.split(' '))
})
