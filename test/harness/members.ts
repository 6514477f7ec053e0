import { call, create, type Target } from './client.js'
import { secretIn, signIn, type ConsoleSession } from './console.js'

export interface MemberJson {
  id: string
  email: string
  role: string
  environments: string[] | null
  permissions: string[]
  invited_by: string
  created_at: string
}

export interface InvitationJson extends Omit<MemberJson, 'id'> {
  id: string
  state: string
  member_id: string | null
  expires_at: string
  url: string
  mailed: boolean
}

export type Access = Partial<Pick<MemberJson, 'role' | 'environments' | 'permissions'>>

let invited = 0

export function invite(target: Target, access: Access, fields: object = {}): Promise<InvitationJson> {
  invited += 1
  const body = { email: `person${invited}@example.com`, ...access, ...fields }
  return create<InvitationJson>(target, '/v1/invitations', body)
}

export interface SignedInMember {
  member: MemberJson
  session: ConsoleSession
  /** With a bearer token of the session. */
  target: Target
}

/** Invites somebody, and signs in with the link. `inviter` must have the scope `admin`. */
export async function join(inviter: Target, access: Access, fields: object = {}): Promise<SignedInMember> {
  const { id, url } = await invite(inviter, access, fields)
  const session = await signIn(inviter, secretIn(url))
  const { body } = await call<InvitationJson>(inviter, 'GET', `/v1/invitations/${id}`)
  const member = await call<MemberJson>(inviter, 'GET', `/v1/members/${body.member_id}`)
  return { member: member.body, session, target: await session.target() }
}
