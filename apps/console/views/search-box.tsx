import { Search } from 'lucide'
import { useLocation } from 'preact-iso'
import { useEffect, useRef, useState } from 'preact/hooks'
import { urlOf, useParameters, useSession } from '../navigation.js'
import { Icon } from '../parts/icon.js'
import { useKeys } from '../parts/keys.js'
import { text } from '../text.js'

/** The search starts when nothing was typed for this time. */
const PAUSE_MS = 200
/** The same, while the last term is a filter: the beginning of one, such as `has:c`, would be refused. */
const PAUSE_IN_FILTER_MS = 1_000

/** A filter with its value, or a word: `-subject:"your code"`. */
const TERM = /-?(?:[\w-]+:)?(?:"[^"]*"?|[^\s"]+)+/g

/** The terms of a search. */
export const termsOf = (q: string): string[] => q.match(TERM) ?? []

function endsInFilter(typed: string): boolean {
  const last = termsOf(typed).at(-1) ?? ''
  return last.includes(':') && typed.endsWith(last)
}

/** The search of the environment's mail, on every page. What it finds is shown as one types. */
export function SearchBox() {
  const { environment } = useSession()
  const { path, route } = useLocation()
  const [{ q = '' }] = useParameters()
  const [typed, setTyped] = useState(q)
  const input = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useKeys({ '/': () => input.current?.focus() })
  useEffect(() => {
    // What is being typed is not replaced.
    if (document.activeElement !== input.current) setTyped(q)
  }, [q])
  const search = (wanted: string) => {
    clearTimeout(timer.current)
    const isSearching = path === '/console/mail'
    if (wanted !== q) route(urlOf('/mail', { environment, q: wanted }), isSearching)
  }
  return (
    <form
      class="search-box"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        search(typed.trim())
      }}
    >
      <Icon of={Search} />
      <input
        ref={input}
        type="search"
        aria-label={text.search.title}
        placeholder={text.search.placeholder}
        title={text.search.hint}
        autocomplete="off"
        maxLength={1000}
        value={typed}
        onInput={({ currentTarget: { value } }) => {
          setTyped(value)
          clearTimeout(timer.current)
          const pauseMs = endsInFilter(value) ? PAUSE_IN_FILTER_MS : PAUSE_MS
          timer.current = setTimeout(() => search(value.trim()), pauseMs)
        }}
        onBlur={() => clearTimeout(timer.current)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          event.preventDefault()
          event.currentTarget.blur()
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  )
}
