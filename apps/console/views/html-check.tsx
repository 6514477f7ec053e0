import type { Message } from '#clients/typescript/src/mayfly.js'
import { useEffect } from 'preact/hooks'
import { Show, useLoaded } from '../parts/loading.js'
import { text } from '../text.js'

/** As many clients of a feature are named at first. */
const NAMED_CLIENTS = 6

/** Which mail clients support the HTML and CSS of a message. */
export function HtmlCheckPanel({
  message,
  onChecked,
}: {
  message: Message
  /** Gets the share of clients that support it, in percent. */
  onChecked: (support: number) => void
}) {
  const check = useLoaded((signal) => message.checkHtml({ signal }), [message.id])
  useEffect(() => {
    if (check.value !== undefined) onChecked(check.value.supported_percent)
  }, [check.value])
  return (
    <Show loaded={check}>
      {({ supported_percent: percent, warnings }) => (
        <>
          <div class="support">
            <strong>{`${Math.floor(percent)} %`}</strong>
            <progress max={100} value={percent} aria-label={text.htmlCheck.supported} />
          </div>
          <p>
            {text.htmlCheck.about(warnings.length)}{' '}
            <a href="https://www.caniemail.com" target="_blank" rel="noopener noreferrer">
              caniemail.com
            </a>
          </p>
          <ul class="plain-list">
            {warnings.map(({ feature, where, clients }) => (
              <li key={feature.slug}>
                <a href={feature.url} target="_blank" rel="noopener noreferrer">
                  {feature.title}
                </a>{' '}
                <span class="muted">
                  {text.htmlCheck.uses(
                    where.count,
                    where.positions.map(({ line }) => line),
                  )}
                </span>
                <details>
                  <summary>
                    {text.htmlCheck.clients(
                      clients.slice(0, NAMED_CLIENTS).map(({ name }) => name),
                      clients.length,
                    )}
                  </summary>
                  <ul>
                    {clients.map(({ name, support, notes }) => (
                      <li key={name}>
                        {name}:{' '}
                        <span class={support === 'none' ? 'bad' : ''}>{text.htmlCheck.support[support]}</span>{' '}
                        <span class="muted">{notes.join(' ').replaceAll('`', '')}</span>
                      </li>
                    ))}
                  </ul>
                </details>
              </li>
            ))}
          </ul>
        </>
      )}
    </Show>
  )
}
