import type { Answer, ProblemJson } from './client.js'

export interface ExpectedProblem {
  status: number
  code: string
  /** The whole of `errors`: where each fault stands. */
  at?: ({ pointer: string } | { parameter: string } | { header: string })[]
  detail?: RegExp
}

/** Holds an answer to what the contract says of every error; returns its body. */
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
    const places = (problem.errors ?? []).map(({ detail: _detail, ...place }) => place)
    expect(places).toEqual(expected.at)
    for (const { detail } of problem.errors ?? []) expect(detail).toMatch(/\S/)
  }
  return problem
}
