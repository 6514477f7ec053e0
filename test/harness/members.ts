import type { Schemas } from '#clients/typescript/src/options.js'
import { call, create, type Target } from './client.js'
import { secretIn, signIn, type ConsoleSession } from './console.js'

/** Those of an account that is not erased. */
export type MemberJson = Schemas['Member'] & { email: string }
export type InvitationJson = Schemas['InvitationWithUrl'] & { email: string }

/** What an invitation or a change gives. */
export interface Access {
  role?: string
  environments?: string[] | null
  permissions?: string[]
}

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
