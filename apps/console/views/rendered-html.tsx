import { Monitor, Moon, Smartphone, Sun, Tablet } from 'lucide'
import { useState } from 'preact/hooks'
import { useMailAccess } from '../navigation.js'
import { IconButton } from '../parts/icon.js'
import { Show, useLoaded } from '../parts/loading.js'
import { useStored } from '../parts/stored.js'
import { text } from '../text.js'

const WIDTHS = [
  ['375px', text.mail.phone, Smartphone],
  ['768px', text.mail.tablet, Tablet],
  ['100%', text.mail.full, Monitor],
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
      <div class="toolbar preview" role="group" aria-label={text.mail.preview}>
        {ticket.value !== undefined && ticket.value.blocked > 0 && (
          <span class="blocked">
            {text.mail.blocked(ticket.value.blocked)}{' '}
            <button
              type="button"
              class="plain"
              title={text.mail.loadRemoteHint}
              onClick={() => setRemoteContent(true)}
            >
              {text.mail.loadRemote}
            </button>
          </span>
        )}
        <span class="space" />
        {WIDTHS.map(([each, label, icon]) => (
          <IconButton
            key={each}
            of={icon}
            label={label}
            class="width"
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
        {({ url }) => (
          <iframe
            key={url}
            class={`rendered ${isDark ? 'dark' : ''}`}
            title={text.mail.rendered}
            sandbox="allow-popups allow-popups-to-escape-sandbox"
            referrerpolicy="no-referrer"
            src={url}
            style={{ width }}
          />
        )}
      </Show>
    </>
  )
}
