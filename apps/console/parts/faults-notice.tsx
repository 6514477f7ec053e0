import { useSession } from '../navigation.js'
import { text } from '../text.js'
import { useLoaded } from './loading.js'

/** The faults on purpose of an inbox, or of the new inboxes of an environment. Shows nothing if there are none. */
export function FaultsNotice({ of, title }: { of: string; title: string }) {
  const { api } = useSession()
  const { value: faults = [] } = useLoaded((signal) => api.faults.get(of, { signal }), [of])
  if (faults.length === 0) return null
  const listed = faults.map(({ stage, action }) => text.faults.fault(action, stage)).join(', ')
  return (
    <p class="notice">
      {title} {listed}
    </p>
  )
}
