import { useState } from 'preact/hooks'
import { useMailAccess } from '../navigation.js'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'

const WIDTHS = [
  ['phone', text.mail.phone, '375px'],
  ['tablet', text.mail.tablet, '768px'],
  ['full', text.mail.full, '100%'],
] as const

/**
 * The HTML of a message, made safe by the server, in a frame of its own origin that can't run scripts. Each display
 * takes a new ticket, which is valid once.
 */
export function RenderedHtml({ inboxId, messageId }: { inboxId: string; messageId: string }) {
  const access = useMailAccess()
  const [hasRemoteContent, setRemoteContent] = useState(false)
  const [width, setWidth] = useState<(typeof WIDTHS)[number]>(WIDTHS[2])
  const ticket = useLoaded(
    () => access.render(inboxId, messageId, hasRemoteContent),
    [messageId, hasRemoteContent],
  )
  return (
    <>
      <div class="buttons" role="group" aria-label={text.mail.width}>
        {WIDTHS.map((each) => (
          <button key={each[0]} type="button" aria-pressed={each === width} onClick={() => setWidth(each)}>
            {each[1]}
          </button>
        ))}
      </div>
      <Show loaded={ticket}>
        {({ url, blocked }) => (
          <>
            {blocked > 0 && (
              <p class="notice">
                {text.mail.blocked(blocked)}{' '}
                <button type="button" onClick={() => setRemoteContent(true)}>
                  {text.mail.loadRemote}
                </button>
              </p>
            )}
            <iframe
              key={url}
              class="rendered"
              title={text.mail.rendered}
              sandbox="allow-popups allow-popups-to-escape-sandbox"
              referrerpolicy="no-referrer"
              src={url}
              style={{ width: width[2] }}
            />
          </>
        )}
      </Show>
    </>
  )
}
