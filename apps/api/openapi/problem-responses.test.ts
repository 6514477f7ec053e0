import { readFile } from 'node:fs/promises'
import { PROBLEM_CODES } from '../http/problems.js'
import { renderProblems } from './problem-responses.js'

const cellsOf = (table: string) =>
  table
    .split('\n')
    .filter((line) => /^\| \d/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))

describe('docs/api.md', () => {
  it('has all problems, and no others (npm run docs updates it)', async () => {
    const guide = await readFile('docs/api.md', 'utf8')
    expect(cellsOf(guide)).toEqual(cellsOf(renderProblems()))
    expect(cellsOf(guide)).toHaveLength(PROBLEM_CODES.length)
  })
})
