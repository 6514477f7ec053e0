import { readFile } from 'node:fs/promises'
import { signingKey, verifierKey } from './checkpoint.js'
import { parsePolicy } from './witness-policy.js'

const COSIGNATURE = 0x04
const keyOf = (name: string, seed: number) =>
  verifierKey(name, signingKey(Buffer.alloc(32, seed)), COSIGNATURE)
const [A = '', B, C, D] = ['a', 'b', 'c', 'd'].map((name, seed) => keyOf(`${name}.example`, seed))
const OTHER = keyOf('e.example', 9)
const WITNESSES = `witness a ${A} https://a.example/
witness b ${B} https://b.example/w
witness c ${C} http://127.0.0.1:7000
witness d ${D}
`

describe('a policy of witnesses', () => {
  it('has the witnesses, with the URLs that are asked', () => {
    const text = `# Ours.\n\nlog example.com+00000000+AAAA\n${WITNESSES}\tquorum  a\t\n # The end.\n`
    const { witnesses, isOptional } = parsePolicy(text)
    expect(witnesses).toEqual([
      { name: 'a', verifier: A, url: 'https://a.example' },
      { name: 'b', verifier: B, url: 'https://b.example/w' },
      { name: 'c', verifier: C, url: 'http://127.0.0.1:7000' },
      { name: 'd', verifier: D, url: null },
    ])
    expect(isOptional).toBe(false)
  })

  it('is read as in the docs', async () => {
    const sections = (await readFile('docs/audit.md', 'utf8')).split('\n## ')
    const section = sections.find((each) => each.startsWith('Witnesses\n')) ?? ''
    const example = section.split('\n').filter((line) => line.startsWith('    '))
    const policy = parsePolicy(example.join('\n'))
    expect(policy.witnesses.map(({ name }) => name)).toEqual(['ours', 'theirs'])
    expect(policy.isMet(new Set(['ours']))).toBe(false)
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
    ['quorum a\nquorum b', 'line 6: there is a quorum already'],
    ['quorum e', 'line 5: there is no witness and no group e above'],
    ['quorum d', 'too few witnesses have a URL for the quorum'],
    ['group g all a d\nquorum g', 'too few witnesses have a URL for the quorum'],
    [`witness a ${OTHER}\nquorum a`, 'line 5: the name a is taken'],
    [`witness none ${OTHER}\nquorum a`, 'line 5: the name none is taken'],
    [`witness e ${A}\nquorum a`, 'line 5: another witness has this key'],
    [`witness e ${keyOf('other.example', 0)}\nquorum a`, 'line 5: another witness has this key'],
    ['witness e key https://e.example\nquorum a', 'line 5: key is not a key'],
    [
      `witness e ${verifierKey('e', signingKey(Buffer.alloc(32, 9)))}\nquorum a`,
      'is not a key of cosignatures',
    ],
    [`witness e ${OTHER} ftp://e.example\nquorum a`, 'line 5: ftp://e.example is not'],
    [`witness e ${OTHER} https://u:p@e.example\nquorum a`, 'without a query or a password'],
    [`witness e ${OTHER} https://e.example/?log=1\nquorum a`, 'without a query or a password'],
    ['group g 4 a b c\nquorum g', 'line 5: a group needs'],
    ['group g 0 a\nquorum g', 'line 5: a group needs'],
    ['group g 0x1 a\nquorum g', 'line 5: a group needs'],
    ['group g any e\nquorum g', 'line 5: there is no witness and no group e above'],
    ['group g 2 a a b\nquorum g', 'line 5: a is in a group already'],
    ['group g any a b\ngroup h any b c\nquorum g', 'line 6: b is in a group already'],
    ['group g any\nquorum g', 'line 5: it is not a witness, a group or a quorum'],
    ['watch a\nquorum a', 'line 5: it is not a witness, a group or a quorum'],
    ['quorum a # enough', 'line 5: it is not a witness, a group or a quorum'],
  ])('is refused: %s', (rest, why) => {
    expect(() => parsePolicy(`${WITNESSES}${rest}`)).toThrow(why)
  })
})
