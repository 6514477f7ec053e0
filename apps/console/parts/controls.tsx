import { Check, Copy } from 'lucide'
import { h, type ComponentChildren, type TargetedEvent, type TargetedInputEvent } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { text } from '../text.js'
import { Icon } from './icon.js'
import { Failure, useAction } from './loading.js'

/** How long a button says that it has copied. */
const COPIED_MS = 1_500

/** A button that copies a text, with an icon after what it shows. */
export function CopyButton({
  value,
  label,
  children,
}: {
  value: string
  /** What is copied, for screen readers. */
  label: string
  children?: ComponentChildren
}) {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), COPIED_MS)
    return () => clearTimeout(timer)
  }, [isCopied])
  const copy = async (event: Event) => {
    event.stopPropagation()
    await navigator.clipboard.writeText(value)
    setCopied(true)
  }
  return (
    <button
      type="button"
      class={`copy ${children === undefined ? 'icon-button' : ''}`}
      aria-label={label}
      title={label}
      onClick={(event) => void copy(event)}
    >
      {children}
      <Icon of={isCopied ? Check : Copy} size={15} />
      {isCopied && (
        <span class="hidden" role="status">
          {text.copied}
        </span>
      )}
    </button>
  )
}

/** A command to try, with a button that copies it. */
export function Command({ intro, command }: { intro: string; command: string }) {
  return (
    <>
      <p>
        {intro} <CopyButton value={command} label={text.copyWhat(text.command)} />
      </p>
      <pre class="wrap">
        <code>{command}</code>
      </pre>
    </>
  )
}

/** A secret that is shown once. */
export function Secret({ label, value, hint = '' }: { label: string; value: string; hint?: string }) {
  return (
    <div class="secret" role="status">
      <strong>{label}</strong>
      <code data-secret>{value}</code>
      <CopyButton value={value} label={text.copyWhat(label)} />
      <p>{`${text.shownOnce} ${hint}`.trim()}</p>
    </div>
  )
}

interface FieldAttributes {
  name?: string
  type?: 'text' | 'email' | 'search' | 'url' | 'number' | 'password' | 'datetime-local'
  value?: string
  defaultValue?: string
  placeholder?: string
  pattern?: string
  min?: number
  maxLength?: number
  required?: boolean
  onInput?: (event: TargetedInputEvent<HTMLInputElement>) => void
  /** Called when the user has finished typing. */
  onChange?: (event: TargetedEvent<HTMLInputElement>) => void
}

/** A labelled input. */
export function Field({
  label,
  hint,
  type = 'text',
  ...attributes
}: { label: string; hint?: string } & FieldAttributes) {
  const id = useId()
  const description = hint === undefined ? undefined : `${id}-hint`
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {/* In JSX, the type of an input must be a literal. */}
      {h('input', {
        id,
        type,
        autocomplete: 'off',
        'aria-describedby': description,
        // The browser shows it below its own message if the value does not match the pattern.
        title: attributes.pattern === undefined ? undefined : hint,
        ...attributes,
      })}
      {hint !== undefined && <small id={description}>{hint}</small>}
    </div>
  )
}

/** A labelled selection of one of several texts. */
export function Choice<Value extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: Value
  options: readonly (readonly [value: Value, label: string])[]
  onChange: (value: Value) => void
}) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={({ currentTarget }) => {
          const chosen = options[currentTarget.selectedIndex]
          if (chosen !== undefined) onChange(chosen[0])
        }}
      >
        {options.map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
      </select>
    </div>
  )
}

/** The values of a form. */
export class FormValues {
  readonly #data: FormData

  constructor(form: HTMLFormElement) {
    this.#data = new FormData(form)
  }

  /** Without white space around it; empty if the field is empty. */
  text(name: string): string {
    const value = this.#data.get(name)
    return typeof value === 'string' ? value.trim() : ''
  }

  isChecked(name: string): boolean {
    return this.#data.has(name)
  }

  /** What follows the prefix in the names of boxes that are checked. */
  checked(prefix: string): string[] {
    const names = [...this.#data.keys()].filter((name) => name.startsWith(prefix))
    return names.map((name) => name.slice(prefix.length))
  }
}

/**
 * A form in a modal dialog. `submit` gets the form's values; if it rejects, the dialog stays open and shows why.
 * Without `action`, the dialog only has a button that closes it.
 */
export function FormDialog({
  title,
  action,
  isDangerous = false,
  submit = () => Promise.resolve(),
  onClose,
  onDone,
  children,
}: {
  title: string
  action?: string
  isDangerous?: boolean
  submit?: (values: FormValues) => Promise<unknown>
  onClose: () => void
  /** Called after a submit. Without it, the dialog stays open. */
  onDone?: () => void
  children: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const { isRunning, error, run } = useAction()
  useEffect(() => {
    const element = dialog.current
    element?.showModal()
    // The focus returns to where it was.
    return () => element?.close()
  }, [])
  const onSubmit = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const values = new FormValues(event.currentTarget)
    if (await run(() => submit(values))) onDone?.()
  }
  return (
    <dialog ref={dialog} aria-labelledby={id} onCancel={onClose}>
      <form onSubmit={(event) => void onSubmit(event)}>
        <h2 id={id}>{title}</h2>
        {children}
        {error !== null && <Failure error={error} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            {action === undefined ? text.close : text.cancel}
          </button>
          {action !== undefined && (
            <button type="submit" class={isDangerous ? 'dangerous' : 'primary'} disabled={isRunning}>
              {isRunning ? text.working : action}
            </button>
          )}
        </div>
      </form>
    </dialog>
  )
}

/** A table that scrolls sideways where it is too wide. `children` are its rows. */
export function Table({
  columns,
  class: name,
  children,
}: {
  /** The heading of each. */
  columns: readonly string[]
  class?: string
  children: ComponentChildren
}) {
  return (
    <div class="scroll" tabIndex={0}>
      <table class={name}>
        <thead>
          <tr>
            {columns.map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

/** Shows more of a list that has at least `limit` items. */
export function ShowMore({ count, limit, onMore }: { count: number; limit: number; onMore: () => void }) {
  if (count < limit) return null
  return (
    <button type="button" onClick={onMore}>
      {text.showMore}
    </button>
  )
}

/** What a view without content shows: why, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

/** Tabs, as in the ARIA Authoring Practices: arrow keys move between them. */
export function Tabs<Name extends string>({
  label,
  tabs,
  current,
  onChange,
  children,
}: {
  label: string
  tabs: readonly (readonly [name: Name, label: string])[]
  current: Name
  onChange: (name: Name) => void
  children: ComponentChildren
}) {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const index = tabs.findIndex(([name]) => name === current)
    const next = tabs[(index + step + tabs.length) % tabs.length]
    if (next === undefined) return
    onChange(next[0])
    list.current?.querySelector<HTMLElement>(`[data-tab="${next[0]}"]`)?.focus()
  }
  return (
    <>
      <div role="tablist" aria-label={label} class="tabs" ref={list} onKeyDown={move}>
        {tabs.map(([name, title]) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            data-tab={name}
            aria-selected={name === current}
            aria-controls={`${id}-panel`}
            tabIndex={name === current ? 0 : -1}
            onClick={() => onChange(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${current}`}
        class="tab-panel"
        tabIndex={0}
      >
        {children}
      </div>
    </>
  )
}
