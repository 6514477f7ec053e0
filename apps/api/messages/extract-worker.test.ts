import { extract } from './extract-worker.js'

const found = (pattern: string, ...texts: (string | null)[]) => {
  const result = extract({ pattern, texts })
  if (result.state === 'invalid') throw new Error(result.reason)
  return result.extracted
}

describe('an expression', () => {
  it.each<{ pattern: string; texts: (string | null)[]; expected: [string, ...(string | null)[]][] }>([
    {
      pattern: 'order (\\d+)',
      texts: ['An order 123 and order 45'],
      expected: [
        ['order 123', '123'],
        ['order 45', '45'],
      ],
    },
    {
      pattern: '(?P<a>x)|(?<b>y)',
      texts: ['y x'],
      expected: [
        ['y', null, 'y'],
        ['x', 'x', null],
      ],
    },
    { pattern: '(?i)GRÜSSE', texts: ['grüsse'], expected: [['grüsse']] },
    { pattern: '^b', texts: ['b', 'a\nb'], expected: [['b']] },
    { pattern: '(?m)^b$', texts: ['a\nb\nc'], expected: [['b']] },
    { pattern: 'a', texts: [null, 'a', 'b a', null], expected: [['a']] },
    { pattern: '\\p{Greek}+', texts: ['λόγος 💩'], expected: [['λόγος']] },
    { pattern: 'x*', texts: ['axx'], expected: [[''], ['xx']] },
    { pattern: 'nothing', texts: ['else', null], expected: [] },
    { pattern: '.', texts: [], expected: [] },
  ])('$pattern matches in $texts: $expected', ({ pattern, texts, expected }) => {
    expect(found(pattern, ...texts)).toEqual(expected.map(([text, ...groups]) => ({ text, groups })))
  })

  it.each([
    { pattern: '(', position: 0 },
    { pattern: 'é(', position: 1 },
    { pattern: '💩(a(b)', position: 1 },
    { pattern: '\\(a|(b', position: 4 },
    { pattern: 'a)', position: 1 },
    { pattern: '(a))(', position: 3 },
    { pattern: 'ab**', position: 2 },
    { pattern: 'x{2}{3}', position: 1 },
    { pattern: 'a{2}b{1001}', position: 5 },
    { pattern: 'a[z-a]', position: 2 },
    { pattern: 'a[b', position: 1 },
    { pattern: '\\\\1\\1', position: 3 },
    { pattern: 'ab\\', position: 2 },
    { pattern: 'a(?=b)', position: 1 },
    { pattern: 'a(?<=b)', position: 1 },
    { pattern: '(?<n>n)(?<n>b)', position: 10 },
    { pattern: 'a\\p{Foo}', position: 1 },
    { pattern: '*a', position: 0 },
    { pattern: '\\d\\', position: 2 },
    { pattern: '(\\Q(\\E\\([(\\]()][](][^](][[:alpha:](]', position: 0 },
    { pattern: '[(]\\Q(\\E\\()(', position: 10 },
    { pattern: '(?<n>n)(?<n>n)', position: 10 },
    { pattern: 'a**b**', position: 1 },
  ])('$pattern is not valid at $position', ({ pattern, position }) => {
    expect(extract({ pattern, texts: [] })).toEqual({
      state: 'invalid',
      reason: expect.stringMatching(/^[a-z]/) as string,
      position,
    })
  })

  it('has at most 100 matches, and those that fit into 65,536 characters', () => {
    const numbers = Array.from({ length: 300 }, (_, index) => index).join(' ')
    expect(found('\\d+', numbers).map(({ text }) => text)).toEqual(
      Array.from({ length: 100 }, (_, index) => String(index)),
    )
    const long = found('((((\\S+))))', `${'a'.repeat(20_000)} ${'b'.repeat(13_000)} c ${'d'.repeat(200)}`)
    expect(long.map(({ text }) => text.charAt(0))).toEqual(['b', 'c'])
  })
})
