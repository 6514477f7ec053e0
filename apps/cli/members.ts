import { Option, type Command } from 'commander'
import type { Schemas } from '#clients/typescript/src/options.js'
import { ROLE_NAMES } from '#libs/domain/account/member.js'
import { wholeNumber } from './arguments.js'
import { facts, table } from './printing.js'
import type { Session } from './session.js'

type Member = Schemas['Member']
type Invitation = Schemas['Invitation'] & Partial<Pick<Schemas['InvitationWithUrl'], 'url'>>

interface AccessOptions {
  role?: string
  environment?: string[]
  allEnvironments?: boolean
  readMail?: boolean
}

/** `mayfly member …` and `mayfly invite …` */
export function memberCommands(program: Command, session: Session): void {
  const member = program
    .command('member')
    .description('manage the people of the account; needs the scope admin')

  member
    .command('list')
    .description('list the members')
    .option('--limit <count>', 'maximum number of members', wholeNumber(), 1_000)
    .action((options: { limit: number }) =>
      session.print(session.api().list<Member>('/v1/members', options), (members) =>
        table(
          ['id', 'email', 'role', 'environments', 'permissions', 'joined'],
          members.map((each) => [...factsOf(each), each.created_at]),
        ),
      ),
    )

  withAccess(member.command('change'))
    .description('change what a member may do')
    .argument('<member>', 'member id')
    .option('--all-environments', 'allow all environments')
    .action((id: string, options: AccessOptions) =>
      session.print(session.api().post<Member>(memberPath(id), accessOf(options), 'PATCH'), memberText),
    )

  member
    .command('remove')
    .description('remove a member, with its sessions and personal keys; prints the keys that it issued')
    .argument('<member>', 'member id')
    .action((id: string) =>
      session.print(session.api().delete<Schemas['RemovedMember']>(memberPath(id)), memberText),
    )

  const invite = program.command('invite').description('invite people to the account; needs the scope admin')

  withAccess(invite.command('create'))
    .description('invite somebody; prints the link, which is shown only once')
    .argument('<email>', 'the address of the person')
    .option('--days <count>', 'how long the link is valid; default: 7', wholeNumber())
    .action((email: string, { days, ...options }: AccessOptions & { days?: number }) => {
      const role = options.role ?? 'developer'
      const body = { email, ...accessOf({ ...options, role }), ...validFor(days) }
      return session.print(session.api().post<Invitation>('/v1/invitations', body), invitationText)
    })

  invite
    .command('list')
    .description('list the invitations that were not used')
    .option('--limit <count>', 'maximum number of invitations', wholeNumber(), 1_000)
    .action((options: { limit: number }) =>
      session.print(session.api().list<Invitation>('/v1/invitations', options), (invitations) =>
        table(
          ['id', 'email', 'role', 'environments', 'permissions', 'state', 'expires'],
          invitations.map((each) => [...factsOf(each), each.state, each.expires_at]),
        ),
      ),
    )

  invite
    .command('resend')
    .description('make a new link for an invitation; the former one is invalid')
    .argument('<invitation>', 'invitation id')
    .option('--days <count>', 'how long the link is valid; default: 7', wholeNumber())
    .action((id: string, { days }: { days?: number }) =>
      session.print(
        session.api().post<Invitation>(`${invitationPath(id)}/resend`, validFor(days)),
        invitationText,
      ),
    )

  invite
    .command('revoke')
    .description('make the link of an invitation invalid')
    .argument('<invitation>', 'invitation id')
    .action((id: string) =>
      session.print(session.api().delete<Invitation>(invitationPath(id)), invitationText),
    )
}

function withAccess(command: Command): Command {
  return command
    .addOption(new Option('--role <role>', 'what the member may do').choices(ROLE_NAMES))
    .option('--environment <environment...>', 'only these environments; default: all')
    .option('--read-mail', 'allow an auditor to read mail')
    .option('--no-read-mail', 'let an admin work without reading mail')
}

function accessOf({ role, environment, allEnvironments, readMail }: AccessOptions): object {
  return {
    role,
    ...(allEnvironments === true ? { environments: null } : { environments: environment }),
    ...(readMail === undefined ? {} : { permissions: readMail ? ['content:read'] : [] }),
  }
}

function validFor(days: number | undefined): object {
  return days === undefined ? {} : { expiresIn: `${days}d` }
}

function factsOf({ id, email, role, environments, permissions }: Member | Invitation) {
  return [id, email, role, environments ?? 'all', permissions]
}

function memberPath(id: string): string {
  return `/v1/members/${encodeURIComponent(id)}`
}

function memberText({ id: member_id, ...member }: Member): string {
  return facts({ member_id, ...member })
}

function invitationPath(id: string): string {
  return `/v1/invitations/${encodeURIComponent(id)}`
}

function invitationText({ id, url, ...invitation }: Invitation): string {
  return facts({ invitation_id: id, ...invitation, ...(url === undefined ? {} : { link: url }) })
}
