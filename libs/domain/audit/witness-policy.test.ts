import { signingKey, verifierKey } from './checkpoint.js'
import { parsePolicy } from './witness-policy.js'

const COSIGNATURE = 0x04
const keyOf = (name: string, seed: number) =>
  verifierKey(name, signingKey(Buffer.alloc(32, seed)), COSIGNATURE)
const [A, B, C] = [keyOf('a.example', 1), keyOf('b.example', 2), keyOf('c.example', 3)]
const WITNESSES = `witness a ${A} https://a.example/
witness b ${B} https://b.example/w
witness c ${C}
`

describe('a policy of witnesses', () => {
  it('has the witnesses, with the URLs that are asked', () => {
    const text = `# Ours.\n\nlog example.com+00000000+AAAA\n${WITNESSES}\tquorum  a # enough\n`
    const { witnesses, isOptional } = parsePolicy(text)
    expect(witnesses).toEqual([
      { name: 'a', verifier: A, url: 'https://a.example' },
      { name: 'b', verifier: B, url: 'https://b.example/w' },
      { name: 'c', verifier: C, url: null },
    ])
    expect(isOptional).toBe(false)
  })

  it.each([
    ['quorum none', [], true],
    ['quorum a', ['b'], false],
    ['quorum a', ['a'], true],
    ['group all3 all a b c\nquorum all3', ['a', 'b'], false],
    ['group all3 all a b c\nquorum all3', ['a', 'b', 'c'], true],
    ['group two 2 a b c\nquorum two', ['c'], false],
    ['group two 2 a b c\nquorum two', ['c', 'a'], true],
    ['group inner any a b\ngroup outer 2 inner c\nquorum outer', ['a', 'b'], false],
    ['group inner any a b\ngroup outer 2 inner c\nquorum outer', ['b', 'c'], true],
  ])('decides which witnesses are enough: %s with %s', (rest, names, isMet) => {
    expect(parsePolicy(`${WITNESSES}${rest}`).isMet(new Set(names))).toBe(isMet)
  })

  it.each([
    ['', 'there is no quorum'],
    ['quorum a\nquorum b', 'line 5: there must be one quorum'],
    ['quorum d', 'there is no witness and no group d'],
    [`witness a ${A}\nquorum a`, 'line 4: the name a is taken'],
    [`witness none ${A}\nquorum a`, 'line 4: the name none is taken'],
    ['witness d key https://d.example\nquorum a', 'line 4: key is not a key'],
    [
      `witness d ${verifierKey('d', signingKey(Buffer.alloc(32, 4)))}\nquorum a`,
      'is not a key of cosignatures',
    ],
    [`witness d ${A} ftp://d.example\nquorum a`, 'line 4: ftp://d.example is not'],
    ['group g 4 a b c\nquorum g', 'line 4: a group needs'],
    ['group g 0 a\nquorum g', 'line 4: a group needs'],
    ['group g any d\nquorum g', 'line 4: there is no witness and no group d above'],
    ['group g any\nquorum g', 'line 4: it is not a witness, a group or a quorum'],
    ['watch d\nquorum a', 'line 4: it is not a witness, a group or a quorum'],
  ])('is refused: %s', (rest, why) => {
    expect(() => parsePolicy(`${WITNESSES}${rest}`)).toThrow(why)
  })
})
