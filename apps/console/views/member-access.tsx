import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { useSession } from '../navigation.js'
import type { FormValues } from '../parts/controls.js'
import { ROLES } from '../roles.js'
import { text } from '../text.js'

export type Role = Schemas['Member']['role']

const ROLE_NAMES = Object.keys(ROLES) as Role[]

const ENVIRONMENT = 'environment:'
const READS_MAIL = 'reads-mail'

/** Of a member or an invitation. The address is erased after its end. */
export const nameOf = ({ id, email }: { id: string; email: string | null }) => email ?? id

/** The fields of what a member may do. `before` is a member whose access is changed. */
export function AccessFields({
  role,
  onRole,
  mayMakeOwners,
  before,
}: {
  role: Role
  onRole: (role: Role) => void
  mayMakeOwners: boolean
  before: Schemas['Member'] | null
}) {
  const { environments } = useSession()
  const { isRestrictable, readsMail: mayRead } = ROLES[role]
  const restricted = before?.environments ?? []
  const readsMail =
    before?.role === role ? before.permissions.includes('content:read') : mayRead === 'by default'
  return (
    <>
      <fieldset>
        <legend>{text.members.role}</legend>
        {ROLE_NAMES.filter((each) => each !== 'owner' || mayMakeOwners).map((each) => (
          <label key={each} class="check">
            <input type="radio" name="role" checked={each === role} onChange={() => onRole(each)} />{' '}
            <strong>{text.members.roles[each]}</strong> {text.members.mayDo[each]}
          </label>
        ))}
      </fieldset>
      {isRestrictable && (
        <fieldset>
          <legend>{text.members.onlyEnvironments}</legend>
          {[...new Set([...environments, ...restricted])].map((name) => (
            <label key={name} class="check">
              <input type="checkbox" name={ENVIRONMENT + name} defaultChecked={restricted.includes(name)} />{' '}
              {name}
            </label>
          ))}
          <small>{text.members.environmentsHint}</small>
        </fieldset>
      )}
      {mayRead !== 'always' && (
        <label key={role} class="check">
          <input type="checkbox" name={READS_MAIL} defaultChecked={readsMail} /> {text.members.mayReadMail}
        </label>
      )}
    </>
  )
}

/** What was chosen in `AccessFields`. */
export function readAccess(role: Role, values: FormValues) {
  const chosen = values.checked(ENVIRONMENT)
  const permissions: Schemas['Member']['permissions'] = values.isChecked(READS_MAIL) ? ['content:read'] : []
  return {
    role,
    environments: chosen.length === 0 ? null : chosen,
    ...(ROLES[role].readsMail === 'always' ? {} : { permissions }),
  }
}
