import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useDialog, useSession } from '../navigation.js'
import { Empty, Table } from '../parts/controls.js'
import { Time } from '../parts/format.js'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'
import { nameOf } from './member-access.js'
import { InviteDialog, MemberDialog, type OpenedDialog } from './member-dialogs.js'

type Member = Schemas['Member']
type Invitation = Schemas['Invitation']

/**
 * The email address of a member by its id: empty while the members are loaded, and the id of a member that is not listed,
 * such as a former one.
 */
export function useEmails(): (memberId: string) => string {
  const session = useSession()
  const { value: members } = useLoaded(
    async (signal) => (session.allows('admin') ? session.api.members.list({ signal }) : []),
    [],
  )
  return (memberId) => {
    if (memberId === session.member?.id) return nameOf(session.member)
    return members === undefined ? '' : (members.find(({ id }) => id === memberId)?.email ?? memberId)
  }
}

/** The people who can sign in for the account, and those who are invited. */
export function MembersView() {
  const { api, member: self } = useSession()
  const members = useLoaded((signal) => api.members.list({ order: 'asc', signal }), [])
  const invitations = useLoaded((signal) => api.invitations.list({ order: 'desc', signal }), [])
  const [isInviting, setInviting] = useDialog('create')
  const [dialog, setDialog] = useState<OpenedDialog | null>(null)
  // Without an owner, the first one can be invited by any administrator.
  const hasOwner = members.value?.some(({ role }) => role === 'owner') ?? true
  const mayMakeOwners = self === null ? !hasOwner : self.role === 'owner'
  const close = () => {
    setDialog(null)
    if (isInviting) setInviting(false)
    members.reload()
    invitations.reload()
  }
  return (
    <section>
      <div class="heading">
        <h1>{text.members.title}</h1>
        <button type="button" class="primary" onClick={() => setInviting(true)}>
          {text.members.invite}
        </button>
      </div>
      <p>{text.members.about}</p>
      <Show loaded={members}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={text.members.none}>
              <p>{text.members.noneHint}</p>
            </Empty>
          ) : (
            <MemberTable members={list} onOpen={setDialog} />
          )
        }
      </Show>
      <h2>{text.members.invitations}</h2>
      <Show loaded={invitations}>
        {(list) =>
          list.length === 0 ? (
            <p>{text.members.noInvitations}</p>
          ) : (
            <InvitationTable invitations={list} onOpen={setDialog} />
          )
        }
      </Show>
      {isInviting && members.value !== undefined && (
        <InviteDialog
          mayMakeOwners={mayMakeOwners}
          firstRole={hasOwner ? 'developer' : 'owner'}
          onClose={close}
        />
      )}
      {dialog !== null && <MemberDialog dialog={dialog} mayMakeOwners={mayMakeOwners} onClose={close} />}
    </section>
  )
}

function MemberTable({
  members,
  onOpen,
}: {
  members: readonly Member[]
  onOpen: (dialog: OpenedDialog) => void
}) {
  const { member: self } = useSession()
  const isOwner = self?.role === 'owner'
  return (
    <Table
      columns={[
        text.members.email,
        text.members.role,
        text.members.environments,
        text.members.readsMail,
        text.members.joined,
        text.actions,
      ]}
    >
      {members.map((member) => {
        const { id, role, environments, permissions, issuer, created_at } = member
        const email = nameOf(member)
        const isSelf = id === self?.id
        const mayManage = role !== 'owner' || isOwner
        return (
          <tr key={id}>
            <td>
              <strong>{email}</strong> {isSelf && <span class="tag">{text.members.you}</span>}{' '}
              {issuer !== null && <small>{text.members.signsInWith(new URL(issuer).host)}</small>}
            </td>
            <td>{text.members.roles[role]}</td>
            <td>{environments?.join(', ') ?? text.members.allEnvironments}</td>
            <td>{permissions.includes('content:read') ? text.members.yes : text.members.no}</td>
            <td>
              <Time value={created_at} />
            </td>
            <td class="buttons">
              {mayManage && !isSelf && (
                <button
                  type="button"
                  aria-label={text.members.changeTitle(email)}
                  onClick={() => onOpen({ kind: 'change', member })}
                >
                  {text.change}
                </button>
              )}
              {isOwner && (
                <button
                  type="button"
                  aria-label={text.members.signInLinkTitle(email)}
                  onClick={() => onOpen({ kind: 'link', member })}
                >
                  {text.members.signInLink}
                </button>
              )}
              {mayManage && (
                <button
                  type="button"
                  aria-label={text.members.removeTitle(email)}
                  onClick={() => onOpen({ kind: 'remove', member })}
                >
                  {text.members.remove}
                </button>
              )}
            </td>
          </tr>
        )
      })}
    </Table>
  )
}

function InvitationTable({
  invitations,
  onOpen,
}: {
  invitations: readonly Invitation[]
  onOpen: (dialog: OpenedDialog) => void
}) {
  return (
    <Table columns={[text.members.email, text.members.role, text.keys.expires, text.actions]}>
      {invitations.map((invitation) => {
        const { id, role, state, expires_at } = invitation
        const email = nameOf(invitation)
        return (
          <tr key={id} class={state}>
            <td>{email}</td>
            <td>{text.members.roles[role]}</td>
            <td>{state === 'expired' ? text.keys.ended.expired : <Time value={expires_at} />}</td>
            <td class="buttons">
              <button
                type="button"
                aria-label={text.members.resendTitle(email)}
                onClick={() => onOpen({ kind: 'resend', invitation })}
              >
                {text.members.resend}
              </button>
              <button
                type="button"
                aria-label={text.members.revokeTitle(email)}
                onClick={() => onOpen({ kind: 'revoke', invitation })}
              >
                {text.revoke}
              </button>
            </td>
          </tr>
        )
      })}
    </Table>
  )
}
