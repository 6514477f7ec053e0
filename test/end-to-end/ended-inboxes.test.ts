import { call, createInbox, inboxWith, mail, only, send } from '#test/harness/client.js'
import { pathsOf } from '#test/harness/inbox-paths.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

describe('an inbox that has ended', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
  })
  afterAll(() => mayfly.dispose())

  const messageIn = async (inboxId: string) =>
    only((await call<{ id: string }[]>(mayfly, 'GET', `/v1/inboxes/${inboxId}/messages`)).body).id

  it('is deleted permanently, and a repeat gets the same answer', async () => {
    const { id, address } = await inboxWith(mayfly, mail('gone'))
    const first = await call<{ deleted_at: string }>(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    expect(first.status).toBe(200)
    expect(first.body).toEqual({
      id,
      address,
      state: 'deleted',
      deleted_at: expect.stringMatching(/^\d{4}-.+\.\d{3}Z$/) as unknown,
    })
    for (let repeat = 0; repeat < 3; repeat += 1) {
      const again = await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
      expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: first.body })
    }
    await expect(send(mayfly, address, mail('too late'))).rejects.toThrow(/550/)
  })

  it('gives concurrent deletions the same answer', async () => {
    const { id } = await createInbox(mayfly)
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => call(mayfly, 'DELETE', `/v1/inboxes/${id}`)),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
  })

  it('reports on every path when it was deleted and by which key', async () => {
    const { id } = await inboxWith(mayfly, mail('gone'))
    const messageId = await messageIn(id)
    const { body } = await call<{ deleted_at: string }>(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    for (const [method, path] of pathsOf(id, messageId)) {
      const problem = expectProblem(await call(mayfly, method, path), { status: 410, code: 'inbox-deleted' })
      expect(problem).toMatchObject({
        ended_at: body.deleted_at,
        ended_by: expect.stringMatching(/^key_/) as unknown,
      })
      expect(problem.detail).toContain(body.deleted_at)
      expect(problem.detail).toContain(problem.ended_by)
    }
  })

  it('is never answered with an empty list, even at the moment of its end', async () => {
    const { id } = await inboxWith(mayfly, ...Array.from({ length: 20 }, (_, index) => mail(String(index))))
    const reading = Array.from({ length: 4 }, async () => {
      const seen: { status: number; count: number }[] = []
      for (;;) {
        const { status, body } = await call<unknown[]>(mayfly, 'GET', `/v1/inboxes/${id}/messages`)
        seen.push({ status, count: status === 200 ? body.length : 0 })
        if (status === 410) return seen
      }
    })
    const { status } = await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    expect(status).toBe(200)
    const seen = (await Promise.all(reading)).flat()
    for (const { status, count } of seen) {
      if (status === 200) expect(count).toBe(20)
      else expect([410, 503]).toContain(status)
    }
    expect(seen.at(-1)?.status).toBe(410)
  })

  it('stays ended after a restart', async () => {
    const { id } = await createInbox(mayfly)
    const { body } = await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)
    expect(await mayfly.end('SIGTERM')).toBe(0)
    mayfly = await mayfly.restart()
    expectProblem(await call(mayfly, 'GET', `/v1/inboxes/${id}`), { status: 410, code: 'inbox-deleted' })
    expect((await call(mayfly, 'DELETE', `/v1/inboxes/${id}`)).body).toEqual(body)
  })
})
