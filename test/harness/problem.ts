import type { Answer, ProblemJson } from './client.js'

export interface ExpectedProblem {
  status: number
  code: string
  /** The positions in `errors`, complete and in order. */
  at?: ({ pointer: string } | { parameter: string } | { header: string })[]
  detail?: RegExp
}

/** Checks an answer against the rules for all problems. Returns the problem. */
export function expectProblem(
  { status, headers, body }: Pick<Answer<unknown>, 'status' | 'headers' | 'body'>,
  expected: ExpectedProblem,
): ProblemJson {
  const problem = (typeof body === 'string' ? JSON.parse(body) : body) as ProblemJson
  expect({ status, code: problem.code }).toEqual({ status: expected.status, code: expected.code })
  expect(headers.get('content-type')).toMatch(/^application\/problem\+json(;|$)/)
  expect(problem.status).toBe(status)
  expect(problem.type).toMatch(new RegExp(`^https?://.+/problems/${problem.code}$`))
  for (const text of [problem.title, problem.detail, problem.fix]) expect(text).toMatch(/\S/)
  expect(problem.request_id).toBe(headers.get('x-request-id'))
  expect(problem.request_id).toMatch(/\S/)
  if (expected.detail !== undefined) expect(problem.detail).toMatch(expected.detail)
  if (expected.at !== undefined) {
    const positions = (problem.errors ?? []).map(({ detail: _detail, ...position }) => position)
    expect(positions).toEqual(expected.at)
    for (const { detail } of problem.errors ?? []) expect(detail).toMatch(/\S/)
  }
  return problem
}
