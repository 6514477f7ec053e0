import { table } from './printing.js'

describe('a table', () => {
  it('has columns as wide as their widest cells', () => {
    const rows = [
      ['a', 'two\nlines', '-'],
      ['longest', 'b', 'c'],
    ]
    expect(table(['id', 'name', 'last'], rows)).toBe(
      ['ID       NAME       LAST', 'a        two lines  -', 'longest  b          c'].join('\n'),
    )
  })

  it('can have more rows than a function can have arguments', () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => [String(index)])
    expect(table(['id'], rows).split('\n')).toHaveLength(rows.length + 1)
  })
})
