import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useSession, ViewLink } from '../navigation.js'
import { Choice, Field, FormDialog, Secret, type FormValues } from '../parts/controls.js'
import { text } from '../text.js'
import { AccessFields, nameOf, readAccess, type Role } from './member-access.js'

type Member = Schemas['Member']

const VALIDITIES = Object.entries(text.members.validities) as [keyof typeof text.members.validities, string][]

export type OpenedDialog =
  | { kind: 'change' | 'link' | 'remove'; member: Member }
  | { kind: 'resend' | 'revoke'; invitation: Schemas['Invitation'] }

/** The dialog of a member or an invitation. */
export function MemberDialog({
  dialog,
  mayMakeOwners,
  onClose,
}: {
  dialog: OpenedDialog
  mayMakeOwners: boolean
  onClose: () => void
}) {
  const session = useSession()
  const { api } = session
  switch (dialog.kind) {
    case 'change':
      return <ChangeDialog member={dialog.member} mayMakeOwners={mayMakeOwners} onClose={onClose} />
    case 'remove':
      return <RemoveDialog member={dialog.member} onClose={onClose} />
    case 'link':
      return (
        <LinkDialog
          title={text.members.signInLinkTitle(nameOf(dialog.member))}
          hint={text.members.signInLinkHint(nameOf(dialog.member))}
          make={() => session.createLink(dialog.member.id)}
          onClose={onClose}
        >
          <p>{text.members.signInLinkAbout}</p>
        </LinkDialog>
      )
    case 'resend':
      return (
        <LinkDialog
          title={text.members.resendTitle(nameOf(dialog.invitation))}
          hint={text.members.linkHint(nameOf(dialog.invitation))}
          make={async (_, expiresIn) =>
            (await api.invitations.resend(dialog.invitation.id, { expiresIn })).url
          }
          hasValidity
          onClose={onClose}
        >
          <p>{text.members.resendAbout}</p>
        </LinkDialog>
      )
    case 'revoke':
      return (
        <FormDialog
          title={text.members.revokeTitle(nameOf(dialog.invitation))}
          action={text.revoke}
          isDangerous
          submit={() => api.invitations.revoke(dialog.invitation.id)}
          onClose={onClose}
          onDone={onClose}
        >
          <p>{text.members.revokeWarning}</p>
        </FormDialog>
      )
  }
}

/** Makes a link that works once, and shows it. */
function LinkDialog({
  title,
  hint,
  make,
  hasValidity = false,
  onClose,
  children,
}: {
  title: string
  /** What the link is for. */
  hint: string
  /** Resolves with the link. `expiresIn` is only chosen with `hasValidity`. */
  make: (values: FormValues, expiresIn: string) => Promise<string>
  hasValidity?: boolean
  onClose: () => void
  children: ComponentChildren
}) {
  const [url, setUrl] = useState<string | null>(null)
  const [validity, setValidity] = useState<keyof typeof text.members.validities>('7d')
  return (
    <FormDialog
      title={title}
      action={url === null ? text.share.create : undefined}
      submit={async (values) => setUrl(await make(values, validity))}
      onClose={onClose}
    >
      {url === null ? (
        <>
          {children}
          {hasValidity && (
            <Choice
              label={text.members.validity}
              value={validity}
              options={VALIDITIES}
              onChange={setValidity}
            />
          )}
        </>
      ) : (
        <Secret label={text.share.link} value={url} hint={hint} />
      )}
    </FormDialog>
  )
}

/** Invites somebody, and shows the link. */
export function InviteDialog({
  mayMakeOwners,
  firstRole,
  onClose,
}: {
  mayMakeOwners: boolean
  firstRole: Role
  onClose: () => void
}) {
  const { api } = useSession()
  const [role, setRole] = useState<Role>(firstRole)
  const [email, setEmail] = useState('')
  return (
    <LinkDialog
      title={text.members.invite}
      hint={text.members.linkHint(email)}
      make={async (values, expiresIn) => {
        const access = readAccess(role, values)
        return (await api.invitations.create({ email: email.trim(), ...access, expiresIn })).url
      }}
      hasValidity
      onClose={onClose}
    >
      <Field
        label={text.members.email}
        type="email"
        required
        maxLength={254}
        value={email}
        onInput={({ currentTarget }) => setEmail(currentTarget.value)}
      />
      <AccessFields role={role} onRole={setRole} mayMakeOwners={mayMakeOwners} before={null} />
    </LinkDialog>
  )
}

function ChangeDialog({
  member,
  mayMakeOwners,
  onClose,
}: {
  member: Member
  mayMakeOwners: boolean
  onClose: () => void
}) {
  const { api } = useSession()
  const [role, setRole] = useState<Role>(member.role)
  return (
    <FormDialog
      title={text.members.changeTitle(nameOf(member))}
      action={text.save}
      submit={(values) => api.members.change(member.id, readAccess(role, values))}
      onClose={onClose}
      onDone={onClose}
    >
      <AccessFields role={role} onRole={setRole} mayMakeOwners={mayMakeOwners} before={member} />
    </FormDialog>
  )
}

/** Removes a member, and lists the service keys that it leaves behind. */
function RemoveDialog({ member, onClose }: { member: Member; onClose: () => void }) {
  const { api } = useSession()
  const [remaining, setRemaining] = useState<readonly Schemas['Key'][] | null>(null)
  const remove = async () => {
    const { service_keys: ids } = await api.members.remove(member.id)
    setRemaining(await Promise.all(ids.map((id) => api.keys.get(id))))
  }
  if (remaining !== null) {
    return (
      <FormDialog title={text.members.removed(nameOf(member))} onClose={onClose}>
        <p>{remaining.length === 0 ? text.members.noServiceKeys : text.members.serviceKeys}</p>
        {remaining.length > 0 && (
          <>
            <ul>
              {remaining.map(({ id, name, prefix }) => (
                <li key={id}>
                  {name} <code>{prefix}…</code>
                </li>
              ))}
            </ul>
            <ViewLink to="/keys">{text.members.showKeys}</ViewLink>
          </>
        )}
      </FormDialog>
    )
  }
  return (
    <FormDialog
      title={text.members.removeTitle(nameOf(member))}
      action={text.members.remove}
      isDangerous
      submit={remove}
      onClose={onClose}
    >
      <p>{text.members.removeWarning}</p>
    </FormDialog>
  )
}
