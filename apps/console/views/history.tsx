import { useSession } from '../navigation.js'
import { formatBytes, Time } from '../parts/format.js'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'

/** The newest events of an inbox; also after its end. */
export function History({ inboxId }: { inboxId: string }) {
  const session = useSession()
  const events = useLoaded((signal) => session.history(inboxId, signal), [inboxId])
  return (
    <Show loaded={events}>
      {(list) => (
        <div class="scroll" tabIndex={0}>
          <table>
            <caption>{text.mail.historyCaption}</caption>
            <thead>
              <tr>
                <th scope="col">{text.time}</th>
                <th scope="col">{text.mail.event}</th>
                <th scope="col">{text.mail.about}</th>
                <th scope="col">{text.mail.position}</th>
              </tr>
            </thead>
            <tbody>
              {list.map(({ id, time, type, message_id, key_id, size, position }) => (
                <tr key={id}>
                  <td>
                    <Time value={time} />
                  </td>
                  <td>{type}</td>
                  <td class="id">
                    {message_id ?? key_id ?? ''}
                    {size === null ? '' : `, ${formatBytes(size)}`}
                  </td>
                  <td>
                    {position.partition}/{position.offset}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Show>
  )
}
