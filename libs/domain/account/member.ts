import { event, type EventOf, type ValueOf } from '#libs/domain/event-sourcing/declare.js'
import * as field from '#libs/domain/event-sourcing/declare.js'
import { accept, refuse, type Decision } from '#libs/domain/event-sourcing/decision.js'
import type { AccountId, KeyId, MemberId } from '#libs/domain/ids/typeid.js'
import { withImplied, type Scope } from './access.js'
import { personalText, type PersonalText } from './personal-data.js'

/*
 * The people of an account. A member begins as an invitation, and joins with the link of it, or by signing in with an identity
 * provider that vouches for the address. What a member may do follows from its role.
 */

interface RoleRules {
  /** What the role allows without reading mail. */
  scopes: readonly Scope[]
  /** Additional scopes with the permission `content:read`. */
  contentScopes: readonly Scope[]
  /** Whether a member of the role has that permission. */
  readsMail: 'always' | 'by default' | 'if given'
  /** Whether it can be restricted to some environments. Keys and members are those of the whole account. */
  isRestrictable: boolean
}

/** What each role allows. Owners may also change the role of other owners, and make others owners. */
export const ROLES = {
  owner: {
    scopes: ['admin', 'audit'],
    contentScopes: ['inboxes'],
    readsMail: 'always',
    isRestrictable: false,
  },
  admin: {
    scopes: ['admin', 'audit'],
    contentScopes: ['inboxes'],
    readsMail: 'by default',
    isRestrictable: false,
  },
  developer: { scopes: [], contentScopes: ['inboxes'], readsMail: 'always', isRestrictable: true },
  viewer: { scopes: [], contentScopes: ['read'], readsMail: 'always', isRestrictable: true },
  auditor: { scopes: ['audit'], contentScopes: ['read'], readsMail: 'if given', isRestrictable: true },
} as const satisfies Record<string, RoleRules>

export type Role = keyof typeof ROLES
export const ROLE_NAMES = Object.keys(ROLES) as [Role, ...Role[]]

/** The permissions that a member has or lacks apart from its role. */
export const PERMISSIONS = ['content:read'] as const

/** What a member may do, and where. */
export interface MemberAccess {
  role: Role
  /** Null for all environments. */
  environments: readonly string[] | null
  /** Whether it has the permission `content:read`. */
  readsMail: boolean
}

export function rulesOf(role: Role): RoleRules {
  return ROLES[role]
}

export function scopesOfMember({ role, readsMail }: Omit<MemberAccess, 'environments'>): Scope[] {
  const { scopes, contentScopes } = rulesOf(role)
  return readsMail ? [...contentScopes, ...scopes] : [...scopes]
}

/** The scopes of a key: of a personal one as far as its member has them; null for the member of a service key. */
export function scopesOfKey(
  { scopes, environment }: { scopes: readonly Scope[]; environment: string },
  member: MemberAccess | null,
): readonly Scope[] {
  if (member === null) return scopes
  const held = withImplied(scopesOfMember(member))
  return mayUseEnvironment(member, environment)
    ? withImplied(scopes).filter((scope) => held.includes(scope))
    : []
}

export function mayUseEnvironment({ environments }: MemberAccess, environment: string): boolean {
  return environments === null || environments.includes(environment)
}

const memberIds = { accountId: field.id('acc'), memberId: field.id('mem') }
/** One more than the member has. Of two concurrent events, the first on the log counts, and the other changes nothing. */
const revision = field.count
/** A key, or the member who is signed in. */
const by = field.id('key', 'mem')
export type Author = KeyId | MemberId

/**
 * A person at an identity provider: the SHA-256 of issuer and subject, which are unique only together (OpenID Connect Core 1.0,
 * section 2), as `identityOf` computes it.
 */
const identity = field.object({ issuer: field.text, hash: field.sha256 })
export type Identity = ValueOf<typeof identity>

const access = {
  role: field.oneOf(ROLE_NAMES),
  environments: field.optional(field.list(field.text), null),
  readsMail: field.boolean,
}

/** Events of members are on account-events, so that one order decides who is an owner. */
export const MEMBER_EVENTS = {
  MemberInvited: event('member.invited', {
    ...memberIds,
    email: personalText,
    ...access,
    /** Of the link's token. */
    tokenHash: field.sha256,
    /** What the member does in the console is counted for this key. */
    usageKeyId: field.id('key'),
    invitedBy: by,
    invitedAt: field.time,
    expiresAt: field.time,
  }),

  /** The invitation has a new link; the former one is invalid. */
  InvitationRenewed: event('member.invitation-renewed', {
    ...memberIds,
    revision,
    tokenHash: field.sha256,
    renewedBy: by,
    renewedAt: field.time,
    expiresAt: field.time,
  }),

  InvitationRevoked: event(
    'member.invitation-revoked',
    { ...memberIds, revision, revokedBy: by, revokedAt: field.time },
    { isRemoval: true },
  ),

  /** The link was used, which starts a session of the console; or the person has signed in with an identity provider. */
  MemberJoined: event('member.joined', {
    ...memberIds,
    revision,
    /** Null if an event of its own starts it. */
    session: field.optional(
      field.object({
        id: field.id('ses'),
        secretHash: field.sha256,
        expiresAt: field.time,
      }),
      null,
    ),
    /** Null if the link was used. */
    identity: field.optional(identity, null),
    joinedAt: field.time,
  }),

  /** The member has joined with a link, and can now sign in with an identity provider too. */
  MemberIdentified: event('member.identified', {
    ...memberIds,
    revision,
    identity,
    identifiedAt: field.time,
  }),

  MemberChanged: event('member.changed', {
    ...memberIds,
    revision,
    ...access,
    changedBy: by,
    changedAt: field.time,
  }),

  MemberRemoved: event(
    'member.removed',
    { ...memberIds, revision, removedBy: by, removedAt: field.time },
    { isRemoval: true },
  ),
}

export type MemberEvent = EventOf<typeof MEMBER_EVENTS>
export type MemberInvited = EventOf<typeof MEMBER_EVENTS, 'MemberInvited'>
export type MemberJoined = EventOf<typeof MEMBER_EVENTS, 'MemberJoined'>

export interface Member extends Omit<MemberInvited, 'type' | 'memberId'> {
  id: MemberId
  /** `revoked`: the invitation was. An invitation that has expired is still `invited`. */
  state: 'invited' | 'revoked' | 'active' | 'removed'
  /** Counts events about the member. */
  revision: number
  /** Who made the last link of the invitation. */
  offeredBy: Author
  /** Null if the member can only sign in with links. */
  identity: Identity | null
  joinedAt: Date | null
  endedAt: Date | null
}

export interface MemberSlice {
  member: Member | null
  /** The members with that role who have joined. */
  owners: readonly MemberId[]
}

export function isMemberEvent(event: { type: string }): event is MemberEvent {
  return Object.hasOwn(MEMBER_EVENTS, event.type)
}

/**
 * Total and idempotent: for a repeated or misplaced event, returns the same member. `isClosed`: the account is, so its
 * last owner can be removed.
 */
export function evolveMember(
  { member, owners }: MemberSlice,
  event: MemberEvent,
  isClosed: boolean,
): MemberSlice {
  if (event.type === 'MemberInvited') return { member: member ?? invited(event, owners), owners }
  if (member === null || event.revision !== member.revision + 1) return { member, owners }
  const { id } = member
  const others = owners.filter((owner) => owner !== id)
  const next = { ...member, revision: event.revision }
  switch (event.type) {
    case 'InvitationRenewed': {
      if (member.state !== 'invited') break
      const { tokenHash, expiresAt, renewedBy: offeredBy } = event
      return { member: { ...next, tokenHash, expiresAt, offeredBy }, owners }
    }
    case 'InvitationRevoked':
      if (member.state !== 'invited') break
      return { member: { ...next, state: 'revoked', endedAt: event.revokedAt }, owners }
    case 'MemberJoined': {
      if (member.state !== 'invited') break
      const { identity, joinedAt } = event
      const joined = { ...next, state: 'active', identity, joinedAt } as const
      return { member: joined, owners: member.role === 'owner' ? [...others, id] : owners }
    }
    case 'MemberIdentified':
      if (member.state !== 'active' || member.identity !== null) break
      return { member: { ...next, identity: event.identity }, owners }
    case 'MemberChanged': {
      const { role, environments, readsMail, changedBy } = event
      if (member.state !== 'active' || !isAllowed(owners, member, role, changedBy)) break
      const changed = { ...next, role, environments, readsMail }
      return { member: changed, owners: role === 'owner' ? [...others, id] : others }
    }
    case 'MemberRemoved':
      if (member.state !== 'active') break
      if (!isClosed && !isAllowed(owners, member, null, event.removedBy)) break
      return { member: { ...next, state: 'removed', endedAt: event.removedAt }, owners: others }
  }
  // The revision still advances, so that a replay of the log ignores this event again.
  return { member: next, owners }
}

/** Null for `role` removes the member. A member who is no longer an owner may have decided it before that was known. */
function isAllowed(owners: readonly MemberId[], member: Member, role: Role | null, author: Author): boolean {
  if (member.role !== 'owner' && role !== 'owner') return true
  if (isMember(author) && !owners.includes(author)) return false
  return role === 'owner' || owners.some((owner) => owner !== member.id)
}

function invited(event: MemberInvited, owners: readonly MemberId[]): Member {
  const { type: _type, memberId: id, ...facts } = event
  const ends = { revision: 0, offeredBy: facts.invitedBy, identity: null, joinedAt: null, endedAt: null }
  const isByFormerOwner =
    event.role === 'owner' && isMember(event.invitedBy) && !owners.includes(event.invitedBy)
  if (isByFormerOwner) return { ...facts, id, ...ends, state: 'revoked', endedAt: event.invitedAt }
  return { ...facts, id, ...ends, state: 'invited' }
}

export function isMember(author: Author): author is MemberId {
  return author.startsWith('mem_')
}

/** Who makes a change: a key, or a member, with what it may give to others. */
export interface Actor {
  by: Author
  isOwner: boolean
  /** The scopes that it may give. */
  mayGive: readonly Scope[]
}

export type MemberCommand = { accountId: AccountId; memberId: MemberId; now: Date } & (
  | ({
      type: 'InviteMember'
      actor: Actor
      email: PersonalText
      tokenHash: string
      usageKeyId: KeyId
      expiresAt: Date
      /** Whether a member or an invitation of the account has this address, according to the view. */
      isKnown: boolean
    } & MemberAccess)
  | { type: 'RenewInvitation'; actor: Actor; tokenHash: string; expiresAt: Date }
  | { type: 'RevokeInvitation'; actor: Actor }
  | {
      type: 'UseInvitation'
      /** Of the link; or the identity, if its provider vouches for the address of the invitation. */
      proof: { tokenHash: string } | { identity: Identity }
      session: MemberJoined['session']
      /** The member who made the link; null if a key did. */
      inviter: Member | null
    }
  /** Somebody with an address in a domain of the account joins without an invitation. */
  | {
      type: 'AdmitMember'
      email: PersonalText
      identity: Identity
      /** What the identity provider says; null for a member who can do nothing until given a role. */
      role: MappedRole | null
      usageKeyId: KeyId
    }
  | { type: 'IdentifyMember'; identity: Identity }
  /** The identity provider says which role the member has. */
  | { type: 'SetRoleFromProvider'; role: MappedRole }
  | ({ type: 'ChangeMember'; actor: Actor } & MemberAccess)
  | { type: 'RemoveMember'; actor: Actor }
  /** Of a closed account: the member or the invitation ends. */
  | { type: 'EndMember'; by: Author }
)

/** An identity provider can't make owners. Of several roles that it says, a person gets the first in this order. */
export const MAPPED_ROLES = ['admin', 'developer', 'viewer', 'auditor'] as const satisfies Role[]
export type MappedRole = (typeof MAPPED_ROLES)[number]

export type MemberRefusal =
  | { code: 'unknown-member' }
  | { code: 'unknown-invitation' }
  | { code: 'invalid-link' }
  | { code: 'invitation-used' }
  | { code: 'known-email' }
  | { code: 'not-restrictable'; role: Role }
  | { code: 'always-reads-mail'; role: Role }
  | { code: 'not-an-owner' }
  | { code: 'beyond-own-access'; missing: readonly Scope[] }
  | { code: 'own-access' }
  | { code: 'has-identity' }
  | { code: 'last-owner' }

/** Checks a command against the view, which may lag. `evolveMember` decides between concurrent events. */
export function decideMember(
  { member, owners }: MemberSlice,
  command: MemberCommand,
): Decision<MemberEvent, MemberRefusal> {
  const { accountId, memberId, now } = command
  const ids = { accountId, memberId }
  if (command.type === 'InviteMember') {
    if (member !== null) return accept()
    const { type: _type, actor, isKnown, now: invitedAt, ...facts } = command
    const refusal = refusalOf(command, actor)
    if (refusal !== null) return refuse(refusal)
    if (isKnown) return refuse({ code: 'known-email' })
    return accept({ type: 'MemberInvited', ...facts, invitedBy: actor.by, invitedAt })
  }
  if (command.type === 'AdmitMember') {
    const { email, identity, role, usageKeyId } = command
    const joined = { type: 'MemberJoined', ...ids, session: null, identity, joinedAt: now } as const
    if (member?.state === 'active') return accept()
    // The process has ended between the two events. Nobody has a token with this hash.
    const isHalfAdmitted = member?.state === 'invited' && member.tokenHash === identity.hash
    if (isHalfAdmitted) return accept({ ...joined, revision: member.revision + 1 })
    if (member !== null) return refuse({ code: 'unknown-member' })
    const invitation = { email, usageKeyId, tokenHash: identity.hash, invitedBy: memberId, invitedAt: now }
    const access = role === null ? NO_ACCESS : accessOfRole(role)
    const invited = { type: 'MemberInvited', ...ids, ...invitation, ...access, expiresAt: now } as const
    return accept<MemberEvent>(invited, { ...joined, revision: 1 })
  }
  if (member?.accountId !== accountId) {
    const isAboutInvitation = command.type === 'RenewInvitation' || command.type === 'RevokeInvitation'
    return refuse({ code: isAboutInvitation ? 'unknown-invitation' : 'unknown-member' })
  }
  const next = { ...ids, revision: member.revision + 1 }
  switch (command.type) {
    case 'RenewInvitation': {
      const { actor, tokenHash, expiresAt } = command
      if (member.tokenHash === tokenHash) return accept()
      if (member.state !== 'invited') return refuse(ENDED[member.state])
      const refusal = refusalOf(member, actor)
      if (refusal !== null) return refuse(refusal)
      const facts = { tokenHash, renewedBy: actor.by, renewedAt: now, expiresAt }
      return accept({ type: 'InvitationRenewed', ...next, ...facts })
    }
    case 'RevokeInvitation':
      if (member.state === 'revoked') return accept()
      if (member.state !== 'invited') return refuse(ENDED[member.state])
      if (member.role === 'owner' && !command.actor.isOwner) return refuse({ code: 'not-an-owner' })
      return accept({ type: 'InvitationRevoked', ...next, revokedBy: command.actor.by, revokedAt: now })
    case 'UseInvitation': {
      const { state, tokenHash, expiresAt } = member
      const { proof, session, inviter } = command
      const isProved = 'identity' in proof || proof.tokenHash === tokenHash
      const isValid = state === 'invited' && isProved && expiresAt > now
      if (!isValid || !mayStillInvite(member, inviter)) return refuse({ code: 'invalid-link' })
      const identity = 'identity' in proof ? proof.identity : null
      return accept({ type: 'MemberJoined', ...next, session, identity, joinedAt: now })
    }
    case 'IdentifyMember': {
      const { identity } = command
      if (member.state !== 'active') return refuse({ code: 'unknown-member' })
      if (member.identity?.hash === identity.hash) return accept()
      if (member.identity !== null) return refuse({ code: 'has-identity' })
      return accept({ type: 'MemberIdentified', ...next, identity, identifiedAt: now })
    }
    case 'SetRoleFromProvider': {
      const { role } = command
      const has = member.role === role && member.environments === null
      if (member.state !== 'active' || member.role === 'owner' || has) return accept()
      const access = accessOfRole(role)
      const readsMail = member.role === role ? member.readsMail : access.readsMail
      const facts = { ...access, readsMail, changedBy: memberId, changedAt: now }
      return accept({ type: 'MemberChanged', ...next, ...facts })
    }
    case 'ChangeMember': {
      const { actor, role, environments, readsMail } = command
      if (member.state !== 'active') return refuse({ code: 'unknown-member' })
      if (hasAccess(member, command)) return accept()
      if (actor.by === memberId) return refuse({ code: 'own-access' })
      const refusal = refusalOf(command, actor) ?? refusalOfOwner({ member, owners }, role, actor)
      if (refusal !== null) return refuse(refusal)
      const facts = { role, environments, readsMail, changedBy: actor.by, changedAt: now }
      return accept({ type: 'MemberChanged', ...next, ...facts })
    }
    case 'EndMember': {
      const { by: author } = command
      if (member.state === 'invited') {
        return accept({ type: 'InvitationRevoked', ...next, revokedBy: author, revokedAt: now })
      }
      if (member.state !== 'active') return accept()
      return accept({ type: 'MemberRemoved', ...next, removedBy: author, removedAt: now })
    }
    case 'RemoveMember': {
      if (member.state === 'removed') return accept()
      if (member.state !== 'active') return refuse({ code: 'unknown-member' })
      const refusal = refusalOfOwner({ member, owners }, null, command.actor)
      if (refusal !== null) return refuse(refusal)
      return accept({ type: 'MemberRemoved', ...next, removedBy: command.actor.by, removedAt: now })
    }
  }
}

/** The link is valid while the member who made it could make it. */
function mayStillInvite(member: Member, inviter: Member | null): boolean {
  if (!isMember(member.offeredBy)) return true
  if (inviter?.id !== member.offeredBy || inviter.state !== 'active') return false
  const held = scopesOfMember(inviter)
  const actor = { by: inviter.id, isOwner: inviter.role === 'owner', mayGive: withImplied(held) }
  return held.includes('admin') && refusalOf(member, actor) === null
}

/** Of a member who has no role yet: a viewer of no environment. */
const NO_ACCESS: MemberAccess = { role: 'viewer', environments: [], readsMail: true }

function accessOfRole(role: Role): MemberAccess {
  return { role, environments: null, readsMail: rulesOf(role).readsMail !== 'if given' }
}

const ENDED = {
  revoked: { code: 'unknown-invitation' },
  active: { code: 'invitation-used' },
  removed: { code: 'invitation-used' },
} as const

/** Why the actor can't give this access; null if it can. */
function refusalOf(wanted: MemberAccess, { isOwner, mayGive }: Actor): MemberRefusal | null {
  const { role, environments, readsMail } = wanted
  const rules = rulesOf(role)
  if (environments !== null && !rules.isRestrictable) return { code: 'not-restrictable', role }
  if (!readsMail && rules.readsMail === 'always') return { code: 'always-reads-mail', role }
  if (role === 'owner' && !isOwner) return { code: 'not-an-owner' }
  const missing = scopesOfMember(wanted).filter((scope) => !mayGive.includes(scope))
  return missing.length === 0 ? null : { code: 'beyond-own-access', missing }
}

/** Why the actor can't give an owner another role, or remove it if that is null. Null if the member is no owner. */
function refusalOfOwner(
  { member, owners }: MemberSlice,
  role: Role | null,
  { by: author, isOwner }: Actor,
): MemberRefusal | null {
  if (member?.role !== 'owner' || role === 'owner') return null
  if (!isOwner && author !== member.id) return { code: 'not-an-owner' }
  return owners.some((owner) => owner !== member.id) ? null : { code: 'last-owner' }
}

export function hasAccess(member: MemberAccess, { role, environments, readsMail }: MemberAccess): boolean {
  return (
    member.role === role &&
    member.readsMail === readsMail &&
    JSON.stringify(member.environments) === JSON.stringify(environments)
  )
}
