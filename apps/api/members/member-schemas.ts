import Type from 'typebox'
import { list, named, plain, text } from '#libs/domain/event-sourcing/declare.js'
import { PERMISSIONS, ROLE_NAMES, type Member as MemberState } from '#libs/domain/account/member.js'
import { brand, type InvitationId, type KeyId, type MemberId } from '#libs/domain/ids/typeid.js'
import { IdOf, KeyOrMember, OneOf, OrNull, orNull, resource, SomeOf, time } from '#libs/runtime/resource.js'

const access = {
  email: OrNull(Type.String(), 'The address that was invited; null once erased.'),
  role: OneOf(ROLE_NAMES, 'What the member may do.'),
  environments: orNull(list(text), 'The only environments that the member can use; null for all.'),
  permissions: SomeOf(PERMISSIONS, '`content:read` if the member may read mail, else none.'),
  invitedBy: KeyOrMember('The key or the member that invited.'),
}

const example = {
  id: 'mem_01jd6b2k8nf3gq6r9t2w5y8z1c',
  email: 'ana@example.com',
  role: 'developer',
  environments: ['staging'],
  permissions: ['content:read'],
  invited_by: 'key_01jd6a0v7w8x9y0z1a2b3c4d5e',
  created_at: '2026-11-21T09:30:00.000Z',
}
const memberExample = { ...example, issuer: 'https://login.example.com' }

const member = {
  id: IdOf('mem', 'The id of the member.'),
  ...access,
  issuer: orNull(text, 'The identity provider to sign in with; null if there are only links.'),
  joinedAt: named('created_at', time('When the invitation was used.')),
}

export const { schema: Member, json: memberJson } = resource(
  'Member',
  { description: 'Somebody who can sign in to the console for the account.', examples: [memberExample] },
  member,
  joinedOf,
)

const keyIds = (description: string) => list(plain(IdOf('key', 'The id of a key.')), { description })

export const { schema: RemovedMember, json: removedMemberJson } = resource(
  'RemovedMember',
  {
    description: 'Somebody who was a member, with the keys that the member issued.',
    examples: [{ ...memberExample, revoked_keys: ['key_01jd6aycj4e7p8s9v1w3x5z7b2'], service_keys: [] }],
  },
  {
    ...member,
    revokedKeys: keyIds('The personal keys of the member. They are revoked.'),
    serviceKeys: keyIds(
      'The active service keys that the member issued. They stay valid: revoke them if needed.',
    ),
  },
  (state: OpenMember, keys: { revokedKeys: KeyId[]; serviceKeys: KeyId[] }) => ({
    ...joinedOf(state),
    ...keys,
  }),
)

const invitationExample = {
  ...example,
  id: 'inv_01jd6b2k8nf3gq6r9t2w5y8z1c',
  state: 'pending',
  member_id: null,
  expires_at: '2026-11-28T09:30:00.000Z',
}

const invitation = {
  id: IdOf('inv', 'The id of the invitation.'),
  ...access,
  state: OneOf(['pending', 'accepted', 'revoked', 'expired'], 'Only a `pending` one can be used, once.'),
  memberId: OrNull(IdOf('mem', ''), 'The member who used it; null if nobody has.'),
  invitedAt: named('created_at', time('When it was made.')),
  expiresAt: time('Its link is invalid from then on.'),
}

export const { schema: Invitation, json: invitationJson } = resource(
  'Invitation',
  { description: 'An invitation to become a member.', examples: [invitationExample] },
  invitation,
  invitationOf,
)

export const { schema: InvitationWithUrl, json: invitationWithUrlJson } = resource(
  'InvitationWithUrl',
  {
    description: 'An invitation with its link.',
    examples: [
      {
        ...invitationExample,
        url: 'https://mayfly.example.com/console#sign-in=mem_01jd6b2k8nf3gq6r9t2w5y8z1c.Zb0pA3mYd5v7Kq9s1uW2xE4tR6yU8iO0cL5nH7gF3jk',
        mailed: false,
      },
    ],
  },
  {
    ...invitation,
    url: Type.String({ description: 'The link for the new member, valid once. It is only in this answer.' }),
    isMailed: named(
      'mailed',
      Type.Boolean({ description: 'Whether the link was also sent to the address.' }),
    ),
  },
  ({ member, ...link }: InvitationLink, now: Date) => ({ ...invitationOf(member, now), ...link }),
)

/** With the address in plain text; null if it was erased. */
export type OpenMember = Omit<MemberState, 'email'> & { email: string | null }

/** An invitation with a new link. */
export interface InvitationLink {
  member: OpenMember
  url: string
  isMailed: boolean
}

function accessOf(state: OpenMember) {
  return { ...state, permissions: state.readsMail ? PERMISSIONS : [] }
}

/** A member who has joined. */
function joinedOf(state: OpenMember) {
  const { identity, joinedAt, invitedAt } = state
  return { ...accessOf(state), issuer: identity?.issuer ?? null, joinedAt: joinedAt ?? invitedAt }
}

function invitationOf(member: OpenMember, now: Date) {
  const { state, id, expiresAt } = member
  const pending = expiresAt <= now ? ('expired' as const) : ('pending' as const)
  const isUsed = state === 'active' || state === 'removed'
  return {
    ...accessOf(member),
    id: invitationIdOf(id),
    state: state === 'invited' ? pending : isUsed ? ('accepted' as const) : ('revoked' as const),
    memberId: isUsed ? id : null,
  }
}

/** An invitation and the member who uses it have the same id but for its prefix. */
export function invitationIdOf(id: MemberId): InvitationId {
  return brand('inv', id.replace('mem', 'inv'))
}

export function memberIdOfInvitation(id: InvitationId): MemberId {
  return brand('mem', id.replace('inv', 'mem'))
}
