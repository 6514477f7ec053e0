import type { KeyJson } from '#test/harness/accounts.js'
import { call, createInbox, type InboxJson } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

const SECOND_KEY = 'another-key-for-a-later-start'

describe('MAYFLY_BOOTSTRAP_API_KEY', () => {
  let mayfly: Mayfly

  afterAll(() => mayfly.dispose())

  it('set to another value at a later start adds a key to the same account', async () => {
    mayfly = await startMayfly({ isOneProcess: true })
    const inbox = await createInbox(mayfly)
    const { body: account } = await call<{ id: string }>(mayfly, 'GET', '/v1/account')
    const firstKey = mayfly.apiKey
    await mayfly.end('SIGTERM')

    const { dataDir } = mayfly
    mayfly = await startMayfly({ isOneProcess: true, dataDir, apiKey: SECOND_KEY })
    expect((await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)).body.id).toBe(inbox.id)
    expect((await call(mayfly, 'GET', '/v1/account')).body).toMatchObject(account)
    expect((await call<unknown[]>(mayfly, 'GET', '/v1/accounts')).body).toHaveLength(1)
    const { body: keys } = await call<KeyJson[]>(mayfly, 'GET', '/v1/keys')
    expect(keys).toHaveLength(2)
    expect((await call({ ...mayfly, apiKey: firstKey }, 'GET', `/v1/inboxes/${inbox.id}`)).status).toBe(200)

    // A repeated start with the same key adds nothing. A revoked key stays revoked, which is logged.
    const own = keys.find(({ prefix }) => SECOND_KEY.startsWith(prefix))
    await call({ ...mayfly, apiKey: firstKey }, 'DELETE', `/v1/keys/${own?.id ?? ''}`)
    await mayfly.end('SIGTERM')
    mayfly = await mayfly.restart()
    expect((await call<unknown[]>({ ...mayfly, apiKey: firstKey }, 'GET', '/v1/keys')).body).toHaveLength(2)
    expectProblem(await call(mayfly, 'GET', '/v1/account'), { status: 401, code: 'revoked-api-key' })
    expect(mayfly.output().stderr).toContain('MAYFLY_BOOTSTRAP_API_KEY was revoked or replaced')
  })
})
