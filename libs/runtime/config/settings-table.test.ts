import { readFile } from 'node:fs/promises'
import { SETTINGS } from './settings-table.js'

describe('docs/operating.md', () => {
  it('has every setting with its default and help (npm run docs updates it)', async () => {
    const text = await readFile('docs/operating.md', 'utf8')
    const rows = text.match(/^\| [A-Z]+_[A-Z_]+ .*$/gm) ?? []
    const written = rows.map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
    const expected = Object.values(SETTINGS).map(({ variable, defaultText, help }) => [
      variable,
      defaultText ?? 'unset',
      help,
    ])
    expect(written).toEqual(expected)
  })
})
