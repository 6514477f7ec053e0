import { Fragment } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { text } from '../text.js'
import { FormDialog } from './controls.js'
import { useStored } from './stored.js'

/** Whether single keys do something. Speech recognition may press them by mistake (WCAG 2.2, 2.1.4). */
const useKeysEnabled = () => useStored('keys', true)

/** Calls a function when its key is pressed, unless the user is typing or a dialog is open. */
export function useKeys(actions: Readonly<Record<string, () => void>>): void {
  const [isEnabled] = useKeysEnabled()
  // Before the paint, so that a key acts on what is seen.
  useLayoutEffect(() => {
    if (!isEnabled && !('?' in actions)) return
    const onKey = (event: KeyboardEvent) => {
      const { key, ctrlKey, metaKey, altKey, target } = event
      const isTyping =
        target instanceof Element && target.closest('input:not([type=checkbox]), textarea, select') !== null
      if (isTyping || ctrlKey || metaKey || altKey || document.querySelector('dialog[open]') !== null) return
      const action = actions[key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })
}

/** The list of keys, which `?` opens. */
export function KeysSheet() {
  const [isOpen, setOpen] = useState(false)
  const [isEnabled, setEnabled] = useKeysEnabled()
  useKeys({ '?': () => setOpen(true) })
  if (!isOpen) return null
  return (
    <FormDialog title={text.shortcuts.title} onClose={() => setOpen(false)} onDone={() => setOpen(false)}>
      <dl class="keys">
        {Object.entries(text.shortcuts.of).map(([key, meaning]) => (
          <Fragment key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </Fragment>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={isEnabled}
          onChange={({ currentTarget }) => setEnabled(currentTarget.checked)}
        />{' '}
        {text.shortcuts.enabled}
      </label>
    </FormDialog>
  )
}
