import { PROBLEM_CODES, PROBLEMS } from '../http/problems.js'

/** The part of docs/api.md that follows from the code: every problem, by its status. */
export function renderProblems(): string {
  const rows = PROBLEM_CODES.map(
    (code) => `| ${PROBLEMS[code].status} | \`${code}\` | ${PROBLEMS[code].title} |`,
  )
  return ['| status | code | what it says |', '| --- | --- | --- |', ...rows.toSorted(), ''].join('\n')
}
