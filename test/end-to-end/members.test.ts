import {
  ROLE_NAMES,
  ROLES,
  scopesOfMember,
  type MemberAccess,
  type Role,
} from '#libs/domain/account/member.js'
import { issueKey, openAccount, withKey, type NewKeyJson } from '#test/harness/accounts.js'
import { call, create, createInbox, mail, messagesOf, send, type Target } from '#test/harness/client.js'
import { secretIn, signIn, type TokenJson } from '#test/harness/console.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { invite, join, type InvitationJson, type MemberJson } from '#test/harness/members.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'

interface RemovedJson extends MemberJson {
  revoked_keys: string[]
  service_keys: string[]
}

const issue = (target: Target, body: object) => call<NewKeyJson>(target, 'POST', '/v1/keys', { body })

const PERSONAL = { name: 'my laptop', environment: 'development', scopes: ['inboxes'], owner: 'personal' }

describe('members', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  /** The admin key of a new account that also has an environment for inboxes. */
  async function newAccount(): Promise<Target> {
    const admin = withKey(mayfly, (await openAccount(mayfly)).key)
    await issueKey(admin)
    return admin
  }

  it('are invited with a link that signs in once', async () => {
    const admin = await newAccount()
    const invitation = await invite(admin, { role: 'owner' })
    expect(invitation).toMatchObject({ state: 'pending', member_id: null, permissions: ['content:read'] })
    const { body: listed } = await call<InvitationJson[]>(admin, 'GET', '/v1/invitations')
    const { url: _url, mailed: _mailed, ...withoutUrl } = invitation
    expect(listed).toEqual([withoutUrl])

    const session = await signIn(admin, secretIn(invitation.url))
    await expect(signIn(admin, secretIn(invitation.url))).rejects.toThrow('sign-in-failed')
    const { body: token } = await session.ask<TokenJson & { member: MemberJson }>(
      ['POST', '/console/session'],
      { body: {} },
    )
    expect(token.member).toMatchObject({ email: invitation.email, role: 'owner' })
    expect((await call<InvitationJson[]>(admin, 'GET', '/v1/invitations')).body).toEqual([])
    const { body: used } = await call<InvitationJson>(admin, 'GET', `/v1/invitations/${invitation.id}`)
    expect(used).toMatchObject({ state: 'accepted', member_id: token.member.id })
    const { body: members } = await call<MemberJson[]>(admin, 'GET', '/v1/members')
    expect(members).toEqual([(await call(admin, 'GET', `/v1/members/${token.member.id}`)).body])
    expect(members).toMatchObject([{ email: invitation.email, role: 'owner', environments: null }])
  })

  it('join once if the link is used twice at the same time', async () => {
    const admin = await newAccount()
    const { url } = await invite(admin, { role: 'developer' })
    const attempts = Array.from({ length: 5 }, () => signIn(admin, secretIn(url)))
    const settled = await Promise.allSettled(attempts)
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it('are invited once for each address, until the invitation is revoked', async () => {
    const admin = await newAccount()
    const first = await invite(admin, { role: 'viewer' }, { email: 'Ana@example.com' })
    const again = { body: { email: 'ana@example.com', role: 'viewer' } }
    expectProblem(await call(admin, 'POST', '/v1/invitations', again), {
      status: 400,
      code: 'invalid-request',
      detail: /email belongs to a member, or to an invitation/,
    })
    const revoked = await call<InvitationJson>(admin, 'DELETE', `/v1/invitations/${first.id}`)
    expect(revoked.body).toMatchObject({ id: first.id, state: 'revoked' })
    await expect(signIn(admin, secretIn(first.url))).rejects.toThrow('sign-in-failed')
    const second = await create<InvitationJson>(admin, '/v1/invitations', again.body)
    const path = `/v1/invitations/${second.id}/resend`
    const { body: resent } = await call<InvitationJson>(admin, 'POST', path, { body: { expires_in: '1d' } })
    expect(resent).toMatchObject({ id: second.id, state: 'pending' })
    await expect(signIn(admin, secretIn(second.url))).rejects.toThrow('sign-in-failed')
    await signIn(admin, secretIn(resent.url))
    expectProblem(await call(admin, 'DELETE', `/v1/invitations/${second.id}`), {
      status: 400,
      code: 'invalid-request',
      detail: /was used/,
    })
  })

  it.each([
    { email: 'nobody' },
    { email: 'a b@example.com' },
    { email: `${'x'.repeat(300)}@example.com` },
    { role: 'root' },
    { role: undefined },
    { environments: ['Staging'] },
    { environments: [] },
    { permissions: ['admin'] },
    { permissions: [] },
    { role: 'admin', environments: ['staging'] },
    { expires_in: '31d' },
    { expires_in: '0d' },
    { expires_in: '12h' },
    { is_owner: true },
  ])('are not invited with %j', async (fields) => {
    const body = { email: 'ana@example.com', role: 'developer', ...fields }
    expectProblem(await call(mayfly, 'POST', '/v1/invitations', { body }), {
      status: 400,
      code: 'invalid-request',
    })
  })

  it('are seen by their own account only', async () => {
    const [admin, other] = [await newAccount(), await newAccount()]
    const { member } = await join(admin, { role: 'developer' })
    const invitation = await invite(admin, { role: 'viewer' })
    for (const [method, path] of [
      ['GET', `/v1/members/${member.id}`],
      ['PATCH', `/v1/members/${member.id}`],
      ['DELETE', `/v1/members/${member.id}`],
      ['GET', `/v1/invitations/${invitation.id}`],
      ['DELETE', `/v1/invitations/${invitation.id}`],
      ['POST', `/v1/invitations/${invitation.id}/resend`],
    ] as const) {
      const body = method === 'PATCH' ? { role: 'owner' } : {}
      const options = method === 'GET' || method === 'DELETE' ? {} : { body }
      expectProblem(await call(other, method, path, options), { status: 404, code: 'not-found' })
    }
    expect((await call<MemberJson[]>(other, 'GET', '/v1/members')).body).toEqual([])
  })

  it('get the link by mail if there is a relay', async () => {
    const env = { MAYFLY_MAIL_RELAY: `smtp://127.0.0.1:${mayfly.smtpPort}` }
    const sender = await startMayfly({ isOneProcess: true, env })
    try {
      const inbox = await createInbox(mayfly)
      const invitation = await invite(sender, { role: 'owner' }, { email: inbox.address })
      expect(invitation.mailed).toBe(true)
      const [listed] = await messagesOf(mayfly, inbox.id, 1)
      const path = `/v1/inboxes/${inbox.id}/messages/${listed?.id}`
      const { body: message } = await call<{ subject: string; links: { href: string }[] }>(
        mayfly,
        'GET',
        path,
      )
      expect(message).toMatchObject({
        subject: expect.stringMatching(/^Invitation to .+ on Mayfly$/) as string,
      })
      expect(message.links.map(({ href }) => href)).toEqual([invitation.url])
      const other = await invite(
        sender,
        { role: 'viewer' },
        { email: inbox.address.replace(/^\w+/, 'nobody') },
      )
      expect(other).toMatchObject({ mailed: false, state: 'pending' })
    } finally {
      await sender.dispose()
    }
  })

  describe('with a role', () => {
    let admin: Target
    const sessions = new Map<string, Target>()
    const accesses = ROLE_NAMES.flatMap((role): Omit<MemberAccess, 'environments'>[] =>
      ROLES[role].readsMail === 'always'
        ? [{ role, readsMail: true }]
        : [true, false].map((readsMail) => ({ role, readsMail })),
    )
    const permissionsOf = (readsMail: boolean) => (readsMail ? ['content:read'] : [])

    beforeAll(async () => {
      admin = await newAccount()
      const owner = await join(admin, { role: 'owner' })
      for (const { role, readsMail } of accesses) {
        const { target } = await join(owner.target, { role, permissions: permissionsOf(readsMail) })
        sessions.set(`${role} ${readsMail}`, target)
      }
    })

    /** Each operation with the scopes of which it needs one; an unknown parameter stops those that are allowed. */
    async function operations(): Promise<{ method: string; path: string; scopes: string[] }[]> {
      const document = (await (await fetch(`${mayfly.url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, { security: Record<string, string[]>[] }>>
      }
      return Object.entries(document.paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { security }]) => ({
          method: method.toUpperCase(),
          path: `${path.replaceAll(/\{\w+\}/g, 'x')}?no-such-parameter=1`,
          scopes: security.flatMap(({ apiKey = [] }) => apiKey),
        })),
      )
    }

    it.each(accesses)('$role may do what the table says (content:read: $readsMail)', async (access) => {
      const target = sessions.get(`${access.role} ${access.readsMail}`)
      if (target === undefined) throw new Error('no session')
      const held: string[] = scopesOfMember(access)
      // Reading is a part of `inboxes`, and every member may issue personal keys.
      const isAllowed = (path: string, scopes: readonly string[]) =>
        path.startsWith('/v1/keys') || scopes.some((scope) => held.includes(scope))
      const sendsMail = (path: string) => path.startsWith('/v1/webhooks')
      const wrong: string[] = []
      let refusals = 0
      for (const { method, path, scopes } of await operations()) {
        if (scopes.length === 0) continue
        const headers = { authorization: `Bearer ${target.apiKey}` }
        const answer = await fetch(mayfly.url + path, { method, headers })
        await answer.body?.cancel()
        const mayCall = isAllowed(path, scopes) && (access.readsMail || !sendsMail(path))
        if ((answer.status === 403) === mayCall || answer.status === 401) wrong.push(`${method} ${path}`)
        if (answer.status === 403) refusals += 1
      }
      expect(wrong).toEqual([])
      expect(refusals).toBeGreaterThan(5)
    })

    const sessionOf = (role: Role, readsMail = true) => sessions.get(`${role} ${readsMail}`) as Target

    it('cannot give what it does not have', async () => {
      const withoutMail = sessionOf('admin', false)
      const refused = { status: 403, code: 'missing-scope' } as const
      for (const scopes of [['inboxes'], ['read'], ['admin'], ['audit', 'admin'], ['operator']]) {
        expectProblem(await issue(withoutMail, { name: 'x', environment: 'development', scopes }), refused)
      }
      expect((await issue(withoutMail, { ...PERSONAL, scopes: ['audit'] })).status).toBe(201)
      const { status } = await issue(sessionOf('admin'), { ...PERSONAL, owner: 'service' })
      expect(status).toBe(201)
      for (const [target, role] of [
        [withoutMail, 'developer'],
        [withoutMail, 'admin'],
        [sessionOf('admin'), 'owner'],
        [admin, 'owner'],
      ] as const) {
        const body = { email: 'more@example.com', role }
        expectProblem(await call(target, 'POST', '/v1/invitations', { body }), refused)
      }
    })

    it('issues personal keys of at most its own scopes, and sees no others', async () => {
      const viewer = sessionOf('viewer')
      const refused = { status: 403, code: 'missing-scope' } as const
      expectProblem(await issue(viewer, PERSONAL), refused)
      expectProblem(await issue(viewer, { ...PERSONAL, scopes: ['read'], owner: 'service' }), refused)
      const { body: key } = await issue(viewer, { ...PERSONAL, scopes: ['read'] })
      expect(key).toMatchObject({ owner: 'personal', created_by: key.member_id })
      const { body: keys } = await call<NewKeyJson[]>(viewer, 'GET', '/v1/keys')
      expect(keys.map(({ id }) => id)).toEqual([key.id])
      const path = `/v1/keys/${key.id}`
      expectProblem(await call(sessionOf('developer'), 'GET', path), { status: 404, code: 'not-found' })
      expectProblem(await call(sessionOf('owner'), 'POST', `${path}/rotate`), refused)
      expect((await call(viewer, 'POST', `${path}/rotate`, { body: {} })).status).toBe(201)
      expect((await call(sessionOf('admin'), 'DELETE', path)).body).toMatchObject({ state: 'revoked' })
    })

    it('issues a personal key only when somebody is signed in', async () => {
      expectProblem(await issue(admin, PERSONAL), { status: 400, code: 'invalid-request', detail: /owner/ })
      const { body: key } = await issue(sessionOf('developer'), PERSONAL)
      const holder = withKey(mayfly, key)
      expectProblem(await issue(holder, PERSONAL), { status: 403, code: 'missing-scope' })
    })
  })

  it('use only the environments that they are given', async () => {
    const admin = await newAccount()
    await issueKey(admin, { environment: 'staging' })
    const { session, target, member } = await join(admin, { role: 'developer', environments: ['staging'] })
    const { body: token } = await session.ask<TokenJson>(['POST', '/console/session'], { body: {} })
    expect(token).toMatchObject({ environment: 'staging', environments: ['staging'] })
    const other = await session.ask(['POST', '/console/session'], { body: { environment: 'development' } })
    expect(other.status).toBe(400)
    expect((await call(target, 'POST', '/v1/inboxes')).status).toBe(201)
    expectProblem(await issue(target, PERSONAL), { status: 403, code: 'missing-scope' })
    const { body: key } = await issue(target, { ...PERSONAL, environment: 'staging' })
    const holder = withKey(mayfly, key)
    expect((await call(holder, 'GET', '/v1/inboxes')).status).toBe(200)

    const path = `/v1/members/${member.id}`
    const changed = await call<MemberJson>(admin, 'PATCH', path, { body: { environments: ['qa'] } })
    expect(changed.body).toEqual({ ...member, environments: ['qa'] })
    for (const caller of [target, holder]) {
      await until('the access to end', async () => (await call(caller, 'GET', '/v1/inboxes')).status === 403)
    }
  })

  it('keep an owner, whom only an owner can change', async () => {
    const admin = await newAccount()
    const first = await join(admin, { role: 'owner' })
    const deputy = await join(first.target, { role: 'admin' })
    const refused = { status: 403, code: 'missing-scope' } as const
    const path = `/v1/members/${first.member.id}`
    for (const target of [admin, deputy.target]) {
      expectProblem(await call(target, 'DELETE', path), refused)
      expectProblem(await call(target, 'PATCH', path, { body: { role: 'viewer' } }), refused)
    }
    const own = `/v1/members/${deputy.member.id}`
    expectProblem(await call(deputy.target, 'PATCH', own, { body: { role: 'owner' } }), refused)
    expectProblem(await call(deputy.target, 'PATCH', own, { body: { permissions: [] } }), refused)
    const last = { status: 400, code: 'invalid-request', detail: /another owner first/ } as const
    expectProblem(await call(first.target, 'DELETE', path), last)
    expectProblem(await call(first.target, 'PATCH', path, { body: { role: 'admin' } }), refused)

    const second = await join(first.target, { role: 'owner' })
    const removals = await Promise.all([
      call(first.target, 'DELETE', `/v1/members/${second.member.id}`),
      call(second.target, 'DELETE', path),
    ])
    expect(removals.filter(({ status }) => status === 200)).toHaveLength(1)
    const { body: members } = await call<MemberJson[]>(admin, 'GET', '/v1/members')
    expect(members.filter(({ role }) => role === 'owner')).toHaveLength(1)
  })

  it('lose sessions, streams and personal keys when they are removed; service keys stay', async () => {
    const admin = await newAccount()
    const { target, member, session } = await join(admin, { role: 'admin' })
    const { body: service } = await issue(target, { ...PERSONAL, owner: 'service', name: 'CI' })
    const { body: personal } = await issue(target, PERSONAL)
    const holders = [withKey(mayfly, personal), target]
    const inbox = await createInbox(withKey(mayfly, personal))
    await send(mayfly, inbox.address, mail('hello'))
    await messagesOf(withKey(mayfly, personal), inbox.id, 1)
    const { body: history } = await call<{ actor: string }[]>(
      withKey(mayfly, service),
      'GET',
      `/v1/inboxes/${inbox.id}/history`,
    )
    expect(history.some(({ actor }) => actor === member.id)).toBe(true)
    const streams = await Promise.all(
      holders.map(({ url, apiKey }) =>
        fetch(`${url}/v1/events`, { headers: { authorization: `Bearer ${apiKey}` } }),
      ),
    )

    const removed = await call<RemovedJson>(admin, 'DELETE', `/v1/members/${member.id}`)
    const lists = { revoked_keys: [personal.id], service_keys: [service.id] }
    expect(removed.body).toEqual({ ...member, ...lists })
    await until('the session and the personal key to end', async () => {
      const answers = await Promise.all(holders.map((holder) => call(holder, 'GET', '/v1/inboxes')))
      return answers.every(({ status }) => status === 401)
    })
    expect((await session.ask(['GET', '/console/sessions'])).status).toBe(401)
    expect((await call(withKey(mayfly, service), 'GET', '/v1/inboxes')).status).toBe(200)
    expect((await call<NewKeyJson>(admin, 'GET', `/v1/keys/${personal.id}`)).body).toMatchObject({
      state: 'revoked',
    })
    expectProblem(await call(admin, 'GET', `/v1/members/${member.id}`), { status: 404, code: 'not-found' })
    const again = await call<RemovedJson>(admin, 'DELETE', `/v1/members/${member.id}`)
    expect(again.body).toMatchObject({ id: member.id, service_keys: [service.id] })
    await createInbox(withKey(mayfly, service))
    for (const stream of streams) expect(await stream.text()).not.toContain(inbox.id)
  })

  it('leave nothing behind when they are removed: invitations, and links and sessions of others', async () => {
    const admin = await newAccount()
    const first = await join(admin, { role: 'owner' })
    const leaving = await join(first.target, { role: 'owner' })
    const developer = await join(first.target, { role: 'developer' })
    const invitation = await invite(leaving.target, { role: 'owner' })
    const linkFor = async () => {
      const body = { member_id: developer.member.id }
      return secretIn(
        (await call<{ url: string }>(leaving.target, 'POST', '/console/links', { body })).body.url,
      )
    }
    const [used, unused] = [await linkFor(), await linkFor()]
    const borrowed = await signIn(mayfly, used)
    const { body: key } = await issue(leaving.target, { ...PERSONAL, scopes: ['inboxes', 'admin'] })
    const ofKey = withKey(mayfly, key)
    const { body: ownLink } = await call<{ url: string }>(ofKey, 'POST', '/console/links')
    const sessions = [await signIn(mayfly, key.secret), await signIn(mayfly, secretIn(ownLink.url))]
    const { body: other } = await issue(leaving.target, PERSONAL)
    const holder = withKey(mayfly, other)
    const inbox = await createInbox(holder)
    const wait = call(holder, 'GET', `/v1/inboxes/${inbox.id}/messages/wait?timeout=25`)

    await call(first.target, 'DELETE', `/v1/keys/${key.id}`)
    await until('the sessions of the key to end', async () => {
      const trades = sessions.map((each) => each.ask(['POST', '/console/session'], { body: {} }))
      return (await Promise.all(trades)).every(({ status }) => status === 401)
    })
    const removed = await call<RemovedJson>(first.target, 'DELETE', `/v1/members/${leaving.member.id}`)
    expect(removed.status).toBe(200)
    for (const secret of [secretIn(invitation.url), unused]) {
      await expect(signIn(mayfly, secret)).rejects.toThrow('sign-in-failed')
    }
    expect((await call<InvitationJson[]>(admin, 'GET', '/v1/invitations')).body).toEqual([])
    expect((await borrowed.ask(['POST', '/console/session'], { body: {} })).status).toBe(401)
    expect((await developer.session.ask(['POST', '/console/session'], { body: {} })).status).toBe(200)
    expect((await wait).status).toBe(401)
  })

  it('cannot open the HTML of a mail with a ticket from before they lost the permission', async () => {
    const admin = await newAccount()
    const { target, member } = await join(admin, { role: 'admin' })
    const inbox = await createInbox(target)
    const source = ['From: a@example.com', 'Subject: x', 'Content-Type: text/html', '', '<p>private</p>']
    await send(mayfly, inbox.address, source.join('\r\n'))
    const [message] = await messagesOf(target, inbox.id, 1)
    const body = { inbox_id: inbox.id, message_id: message?.id }
    const ticket = async () =>
      (await call<{ url: string }>(target, 'POST', '/console/render', { body })).body.url
    const [early, late] = [await ticket(), await ticket()]
    expect(await (await fetch(mayfly.url + early)).text()).toContain('private')
    await call(admin, 'PATCH', `/v1/members/${member.id}`, { body: { permissions: [] } })
    const { status } = await fetch(mayfly.url + late)
    expect(status).toBe(404)
  })

  it('who are owners keep their sessions and keys from others', async () => {
    const admin = await newAccount()
    const owner = await join(admin, { role: 'owner' })
    const deputy = await join(owner.target, { role: 'admin' })
    const { body: key } = await issue(owner.target, PERSONAL)
    const refused = { status: 403, code: 'missing-scope' } as const
    for (const target of [admin, deputy.target]) {
      expectProblem(await call(target, 'DELETE', `/v1/keys/${key.id}`), refused)
    }
    const { id } = await invite(owner.target, { role: 'owner' })
    expectProblem(await call(deputy.target, 'DELETE', `/v1/invitations/${id}`), refused)
    const end = ['DELETE', `/console/sessions/${owner.session.id}`] as const
    expect((await deputy.session.ask(end)).status).toBe(404)
    // An operator can let them in again.
    const body = { member_id: owner.member.id }
    const { body: link } = await call<{ url: string }>(mayfly, 'POST', '/console/links', { body })
    const session = await signIn(mayfly, secretIn(link.url))
    const { body: token } = await session.ask<TokenJson>(['POST', '/console/session'], { body: {} })
    expect(token).toMatchObject({ member: { id: owner.member.id } })
  })

  it('sign in again with a link from an owner', async () => {
    const admin = await newAccount()
    const owner = await join(admin, { role: 'owner' })
    const developer = await join(owner.target, { role: 'developer' })
    const body = { member_id: developer.member.id }
    expectProblem(await call(admin, 'POST', '/console/links', { body }), {
      status: 403,
      code: 'missing-scope',
    })
    const { body: link } = await call<{ url: string }>(owner.target, 'POST', '/console/links', { body })
    const session = await signIn(mayfly, secretIn(link.url))
    const { body: token } = await session.ask<TokenJson & { scopes: string[] }>(
      ['POST', '/console/session'],
      { body: {} },
    )
    expect(token).toMatchObject({ member: { id: developer.member.id }, scopes: ['inboxes'] })
    const { body: own } = await session.ask<{ member_id: string }[]>(['GET', '/console/sessions'])
    expect(own.map((each) => each.member_id)).toEqual([developer.member.id, developer.member.id])
    const { body: all } = await owner.session.ask<{ id: string }[]>(['GET', '/console/sessions'])
    expect(all).toHaveLength(3)
    const end = ['DELETE', `/console/sessions/${owner.session.id}`] as const
    expect((await session.ask(end)).status).toBe(404)
    const { body: own2 } = await call<{ url: string }>(owner.target, 'POST', '/console/links')
    const next = await signIn(mayfly, secretIn(own2.url))
    const { body: asOwner } = await next.ask<TokenJson>(['POST', '/console/session'], { body: {} })
    expect(asOwner).toMatchObject({ member: { id: owner.member.id } })
  })
})
