import { Moon, Smartphone, StretchHorizontal, Sun, Tablet } from 'lucide'
import { useState } from 'preact/hooks'
import { useMailAccess } from '../navigation.js'
import { IconButton } from '../parts/icon.js'
import { Show, useLoaded } from '../parts/loading.js'
import { useStored } from '../parts/stored.js'
import { text } from '../text.js'

const WIDTHS = [
  ['375px', text.mail.phone, Smartphone],
  ['768px', text.mail.tablet, Tablet],
  ['100%', text.mail.full, StretchHorizontal],
] as const

/**
 * The HTML of a message, made safe by the server, in a frame of its own origin that can't run scripts. Each display
 * takes a new ticket, which is valid once.
 */
export function RenderedHtml({ inboxId, messageId }: { inboxId: string; messageId: string }) {
  const access = useMailAccess()
  const [hasRemoteContent, setRemoteContent] = useState(false)
  const [width, setWidth] = useStored<string>('html-width', '100%')
  const [isDark, setDark] = useState(matchMedia('(prefers-color-scheme: dark)').matches)
  const ticket = useLoaded(
    () => access.render(inboxId, messageId, hasRemoteContent),
    [messageId, hasRemoteContent],
  )
  return (
    <>
      <div class="toolbar" role="group" aria-label={text.mail.preview}>
        {WIDTHS.map(([each, label, icon]) => (
          <IconButton
            key={each}
            of={icon}
            label={label}
            aria-pressed={each === width}
            onClick={() => setWidth(each)}
          />
        ))}
        <IconButton
          of={isDark ? Moon : Sun}
          label={text.mail.darkPreview}
          aria-pressed={isDark}
          onClick={() => setDark(!isDark)}
        />
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
              class={`rendered ${isDark ? 'dark' : ''}`}
              title={text.mail.rendered}
              sandbox="allow-popups allow-popups-to-escape-sandbox"
              referrerpolicy="no-referrer"
              src={url}
              style={{ width }}
            />
          </>
        )}
      </Show>
    </>
  )
}
