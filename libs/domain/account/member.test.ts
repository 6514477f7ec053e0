import { specificationOf } from '#libs/domain/event-sourcing/specification.test-support.js'
import { idFromBytes, type MemberId } from '#libs/domain/ids/typeid.js'
import { ACCOUNT_ID, day, hash, KEY_ID } from './account.test-support.js'
import {
  decideMember,
  evolveMember,
  rulesOf,
  ROLE_NAMES,
  scopesOfMember,
  scopesOfKey,
  type Actor,
  type MemberAccess,
  type MemberCommand,
  type MemberEvent,
  type MemberSlice,
  type Role,
} from './member.js'

const memberIdOf = (n: number): MemberId => idFromBytes('mem', Buffer.alloc(16, n))
const [memberId, otherId] = [memberIdOf(1), memberIdOf(2)]
const accountId = ACCOUNT_ID
const session = { id: idFromBytes('ses', Buffer.alloc(16, 1)), secretHash: hash('b'), expiresAt: day(9) }
const developer: MemberAccess = { role: 'developer', environments: null, readsMail: true }
const owner: MemberAccess = { ...developer, role: 'owner' }
const facts = { accountId, memberId, email: 'ana@example.com', tokenHash: hash('a'), usageKeyId: KEY_ID }

const invited = (access = developer): MemberEvent => ({
  ...{ type: 'MemberInvited', ...facts, ...access },
  ...{ invitedBy: KEY_ID, invitedAt: day(1), expiresAt: day(8) },
})
const renewed = (digit: string): MemberEvent => ({
  ...{ type: 'InvitationRenewed', accountId, memberId, revision: 1, tokenHash: hash(digit) },
  ...{ renewedBy: KEY_ID, renewedAt: day(2), expiresAt: day(9) },
})
const invitationRevoked: MemberEvent = {
  ...{ type: 'InvitationRevoked', accountId, memberId, revision: 1, revokedBy: KEY_ID, revokedAt: day(2) },
}
const joined = (revision = 1): MemberEvent => ({
  type: 'MemberJoined',
  ...{ accountId, memberId, revision, session, identity: null, joinedAt: day(2) },
})
const changed = (revision: number, access: MemberAccess, changedBy = otherId): MemberEvent => ({
  type: 'MemberChanged',
  ...{ accountId, memberId, revision, ...access, changedBy, changedAt: day(3) },
})
const removed = (revision: number, removedBy: MemberId = otherId): MemberEvent => ({
  type: 'MemberRemoved',
  ...{ accountId, memberId, revision, removedBy, removedAt: day(3) },
})

const asOwner: Actor = { by: otherId, isOwner: true, mayGive: ['inboxes', 'read', 'audit', 'admin'] }
const asAdmin: Actor = { ...asOwner, isOwner: false }
const invite = (more: Partial<Extract<MemberCommand, { type: 'InviteMember' }>> = {}): MemberCommand => ({
  ...{ type: 'InviteMember', ...facts, ...developer, actor: { ...asAdmin, by: KEY_ID } },
  ...{ isKnown: false, expiresAt: day(8), now: day(1), ...more },
})
const use = (now = day(2), digit = 'a'): MemberCommand => ({
  type: 'UseInvitation',
  ...{ accountId, memberId, proof: { tokenHash: hash(digit) }, session, inviter: null, now },
})
const change = (actor: Actor, access: MemberAccess): MemberCommand => ({
  type: 'ChangeMember',
  ...{ accountId, memberId, actor, ...access, now: day(3) },
})
const remove = (actor: Actor): MemberCommand => ({
  type: 'RemoveMember',
  ...{ accountId, memberId, actor, now: day(3) },
})

const identity = { issuer: 'https://login.example.com', hash: hash('1') }
const stranger = { ...identity, hash: hash('2') }
const asPerson = (now = day(2)): MemberCommand => ({
  type: 'UseInvitation',
  ...{ accountId, memberId, proof: { identity }, session: null, inviter: null, now },
})
const joinedAs = (revision = 1, at = day(2)): MemberEvent => ({
  type: 'MemberJoined',
  ...{ accountId, memberId, revision, session: null, identity, joinedAt: at },
})
const identify = (wanted = identity): MemberCommand => ({
  type: 'IdentifyMember',
  ...{ accountId, memberId, identity: wanted, now: day(3) },
})
const identified = (revision: number, wanted = identity): MemberEvent => ({
  type: 'MemberIdentified',
  ...{ accountId, memberId, revision, identity: wanted, identifiedAt: day(3) },
})
const admit = (role: 'developer' | null): MemberCommand => ({
  type: 'AdmitMember',
  ...{ accountId, memberId, email: facts.email, identity, role, usageKeyId: KEY_ID, now: day(2) },
})
const admitted = (access: MemberAccess): MemberEvent => ({
  ...{ type: 'MemberInvited', ...facts, ...access, tokenHash: identity.hash },
  ...{ invitedBy: memberId, invitedAt: day(2), expiresAt: day(2) },
})
const take = (role: 'admin' | 'developer' | 'auditor'): MemberCommand => ({
  type: 'SetRoleFromProvider',
  ...{ accountId, memberId, role, now: day(3) },
})

const specificationWith = (owners: readonly MemberId[], isClosed = false) =>
  specificationOf({
    initial: { member: null, owners },
    evolve: (slice: MemberSlice, event: MemberEvent) => evolveMember(slice, event, isClosed),
    decide: decideMember,
  })
const { given, replay } = specificationWith([otherId])
/** Nobody else is an owner. */
const alone = specificationWith([])

describe('a role', () => {
  it.each(ROLE_NAMES)('%s reads mail only with the permission', (role) => {
    const content = rulesOf(role).contentScopes
    const without = scopesOfMember({ role, readsMail: false })
    expect(without.filter((scope) => scope === 'inboxes' || scope === 'read')).toEqual([])
    expect(scopesOfMember({ role, readsMail: true })).toEqual([...content, ...without])
  })

  it('limits a personal key', () => {
    const key = { environment: 'staging', scopes: ['inboxes', 'read', 'admin'] as const }
    expect(scopesOfKey(key, developer)).toEqual(['inboxes', 'read'])
    expect(scopesOfKey(key, { ...developer, role: 'viewer' })).toEqual(['read'])
    expect(scopesOfKey({ ...key, scopes: ['inboxes'] }, { ...developer, role: 'viewer' })).toEqual(['read'])
    expect(scopesOfKey(key, { ...developer, environments: ['qa'] })).toEqual([])
    expect(scopesOfKey(key, { ...developer, environments: ['staging'] })).toHaveLength(2)
  })
})

describe('an invitation', () => {
  it('is made once', () => {
    given().when(invite()).then([invited()])
    given(invited())
      .when(invite({ email: 'other@example.com' }))
      .then([])
  })

  it.each([
    [{ isKnown: true }, { code: 'known-email' }],
    [owner, { code: 'not-an-owner' }],
    [
      { ...owner, actor: asOwner, environments: ['qa'] },
      { code: 'not-restrictable', role: 'owner' },
    ],
    [{ readsMail: false }, { code: 'always-reads-mail', role: 'developer' }],
    [
      { actor: { ...asAdmin, mayGive: ['audit', 'admin'] as const } },
      { code: 'beyond-own-access', missing: ['inboxes'] },
    ],
  ] as const)('is refused: %j', (more, refusal) => {
    given()
      .when(invite({ ...more }))
      .thenRefused(refusal)
  })

  it('is used once, before it expires, with its last link', () => {
    given(invited())
      .when(use(new Date(day(8).getTime() - 1)))
      .then([{ ...joined(), joinedAt: new Date(day(8).getTime() - 1) } as MemberEvent])
    const refused = { code: 'invalid-link' } as const
    given(invited())
      .when(use(day(8)))
      .thenRefused(refused)
    given(invited(), joined()).when(use()).thenRefused(refused)
    given(invited(), invitationRevoked).when(use()).thenRefused(refused)
    given(invited(), renewed('c')).when(use()).thenRefused(refused)
    given(invited(), renewed('c'))
      .when(use(day(2), 'c'))
      .then([joined(2)])
  })

  it('is only valid while the member who made it may still make it', () => {
    const inviter = (access: MemberAccess, state: 'active' | 'removed' = 'active') => {
      const made = replay([{ ...invited(access), memberId: otherId }]).member
      return made && { ...made, state }
    }
    const byMember = { ...invited(), invitedBy: otherId } as MemberEvent
    const admin: MemberAccess = { ...developer, role: 'admin' }
    const useWith = (access: MemberAccess, state?: 'removed') => ({
      ...use(),
      inviter: inviter(access, state),
    })
    given(byMember).when(useWith(admin)).then([joined()])
    const refused = { code: 'invalid-link' } as const
    given(byMember).when(useWith(admin, 'removed')).thenRefused(refused)
    given(byMember)
      .when(useWith({ ...admin, readsMail: false }))
      .thenRefused(refused)
    given(byMember).when(useWith(developer)).thenRefused(refused)
    given({ ...invited(owner), invitedBy: otherId } as MemberEvent)
      .when(useWith(admin))
      .thenRefused(refused)
  })

  it('is not renewed or revoked after its use', () => {
    const ids = { accountId, memberId, actor: asAdmin, now: day(3) }
    const renew = { type: 'RenewInvitation', ...ids, tokenHash: hash('d'), expiresAt: day(9) } as const
    for (const command of [renew, { type: 'RevokeInvitation', ...ids } as const]) {
      given(invited(), joined()).when(command).thenRefused({ code: 'invitation-used' })
    }
    given(invited(), invitationRevoked).when(renew).thenRefused({ code: 'unknown-invitation' })
  })

  it('of a former owner to become an owner is invalid', () => {
    const event = { ...invited(owner), invitedBy: memberIdOf(3) } as MemberEvent
    expect(replay([event]).member?.state).toBe('revoked')
  })
})

describe('a member', () => {
  it('who is an owner counts as one once it has joined', () => {
    expect(replay([invited(owner)]).owners).toEqual([otherId])
    expect(replay([invited(owner), joined()]).owners).toEqual([otherId, memberId])
    expect(replay([invited(owner), joined(), changed(2, developer)]).owners).toEqual([otherId])
    expect(replay([invited(), joined(), changed(2, owner)]).owners).toEqual([otherId, memberId])
    expect(replay([invited(owner), joined(), removed(2)]).owners).toEqual([otherId])
  })

  it('is changed by others, within what they may give', () => {
    const viewer: MemberAccess = { ...developer, role: 'viewer' }
    given(invited(), joined())
      .when(change(asAdmin, viewer))
      .then([changed(2, viewer)])
    given(invited(), joined()).when(change(asAdmin, developer)).then([])
    given(invited(), joined())
      .when(change({ ...asOwner, by: memberId }, viewer))
      .thenRefused({ code: 'own-access' })
    given(invited(), joined()).when(change(asAdmin, owner)).thenRefused({ code: 'not-an-owner' })
    given(invited()).when(change(asAdmin, viewer)).thenRefused({ code: 'unknown-member' })
  })

  it('who is the last owner stays', () => {
    const last = { code: 'last-owner' } as const
    alone.given(invited(owner), joined()).when(remove(asOwner)).thenRefused(last)
    alone.given(invited(owner), joined()).when(change(asOwner, developer)).thenRefused(last)
    const view = alone.replay([invited(owner), joined(), removed(2)])
    expect(view).toMatchObject({ member: { state: 'active', revision: 2 }, owners: [memberId] })
    const closed = specificationWith([], true).replay([invited(owner), joined(), removed(2)])
    expect(closed).toMatchObject({ member: { state: 'removed' }, owners: [] })
  })

  it('who is an owner is changed by owners only', () => {
    const role: Role = 'owner'
    for (const command of [remove(asAdmin), change(asAdmin, developer)]) {
      given(invited({ ...developer, role }), joined())
        .when(command)
        .thenRefused({ code: 'not-an-owner' })
    }
    // Two owners remove each other: the second event on the log is by somebody who is no longer an owner.
    const byFormer = replay([invited(owner), joined(), removed(2, memberIdOf(3))])
    expect(byFormer.member?.state).toBe('active')
  })

  it('is removed once', () => {
    given(invited(), joined())
      .when(remove(asAdmin))
      .then([removed(2)])
    given(invited(), joined(), removed(2)).when(remove(asAdmin)).then([])
    given(invited(), joined(), removed(2)).when(use()).thenRefused({ code: 'invalid-link' })
  })

  it('keeps the first of two concurrent changes', () => {
    const [viewer, auditor] = [
      { ...developer, role: 'viewer' as const },
      { ...developer, role: 'auditor' as const },
    ]
    const history = [invited(), joined(), changed(2, viewer)]
    expect(replay([...history, changed(2, auditor)])).toEqual(replay(history))
  })
})

describe('a person whom an identity provider has identified', () => {
  it('uses an invitation without its link, once and in time', () => {
    given(invited()).when(asPerson()).then([joinedAs()])
    given(invited())
      .when(asPerson(day(8)))
      .thenRefused({ code: 'invalid-link' })
    given(invited(), joined()).when(asPerson()).thenRefused({ code: 'invalid-link' })
    given(invited(), invitationRevoked).when(asPerson()).thenRefused({ code: 'invalid-link' })
    expect(replay([invited(), joinedAs()]).member).toMatchObject({ state: 'active', identity })
  })

  it('is connected to a member who has none', () => {
    given(invited(), joined())
      .when(identify())
      .then([identified(2)])
    given(invited(), joined(), identified(2)).when(identify()).then([])
    given(invited(), joined(), identified(2)).when(identify(stranger)).thenRefused({ code: 'has-identity' })
    given(invited()).when(identify()).thenRefused({ code: 'unknown-member' })
    // Two at the same time: the first one counts.
    const both = replay([invited(), joined(), identified(2), identified(3, stranger)])
    expect(both.member).toMatchObject({ identity, revision: 3 })
  })

  it('is admitted without rights, or with the role that the provider says', () => {
    const none: MemberAccess = { role: 'viewer', environments: [], readsMail: true }
    given()
      .when(admit(null))
      .then([admitted(none), joinedAs()])
    given()
      .when(admit('developer'))
      .then([admitted(developer), joinedAs()])
    given(admitted(none)).when(admit(null)).then([joinedAs()])
    given(admitted(none), joinedAs()).when(admit(null)).then([])
    given(admitted(none), joinedAs(), removed(2)).when(admit(null)).thenRefused({ code: 'unknown-member' })
    // Somebody else has this address.
    given(invited()).when(admit(null)).thenRefused({ code: 'unknown-member' })
  })

  it('takes the role that the provider says, unless it is an owner', () => {
    const own = (revision: number, access: MemberAccess) => changed(revision, access, memberId)
    given(invited(), joined())
      .when(take('admin'))
      .then([own(2, { ...developer, role: 'admin' })])
    given(invited(), joined())
      .when(take('auditor'))
      .then([own(2, { role: 'auditor', environments: null, readsMail: false })])
    given(invited(), joined()).when(take('developer')).then([])
    const restricted: MemberAccess = { role: 'developer', environments: ['qa'], readsMail: true }
    given(invited(restricted), joined())
      .when(take('developer'))
      .then([own(2, developer)])
    given(invited(owner), joined()).when(take('developer')).then([])
    given(invited()).when(take('admin')).then([])
  })
})
