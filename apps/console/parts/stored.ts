import { useContext, useEffect, useState } from 'preact/hooks'
import { SessionContext } from '../navigation.js'

/*
 * What this browser remembers: which mail was read, the widths of panes, saved searches. Nothing of it is on the server.
 */

/** A value under a name in the browser's storage, and a function that replaces it for everything that uses it, in all tabs. */
export function useStored<Value>(name: string, initial: Value): [Value, (value: Value) => void] {
  const key = `mayfly-${name}`
  const [value, setValue] = useState<Value>(() => read(key, initial))
  useEffect(() => {
    const onStorage = (event: StorageEvent) => {
      if (event.key === key) setValue(read(key, initial))
    }
    addEventListener('storage', onStorage)
    return () => removeEventListener('storage', onStorage)
  }, [key])
  const store = (next: Value) => {
    setValue(next)
    try {
      localStorage.setItem(key, JSON.stringify(next))
    } catch {
      // A browser without storage forgets it when the page is closed.
      return
    }
    // The browser sends this event to other tabs only.
    dispatchEvent(new StorageEvent('storage', { key }))
  }
  return [value, store]
}

function read<Value>(key: string, initial: Value): Value {
  try {
    const stored = localStorage.getItem(key)
    const value: unknown = stored === null ? initial : JSON.parse(stored)
    return hasShapeOf(initial, value) ? (value as Value) : initial
  } catch {
    return initial
  }
}

/** Anyone can change what the browser stores. Arrays are of texts. */
function hasShapeOf(initial: unknown, value: unknown): boolean {
  if (Array.isArray(initial)) return Array.isArray(value) && value.every((each) => typeof each === 'string')
  if (typeof initial !== 'object' || initial === null) return typeof value === typeof initial
  if (typeof value !== 'object' || value === null) return false
  const properties = new Map<string, unknown>(Object.entries(value))
  return Object.entries(initial).every(([name, each]) => hasShapeOf(each, properties.get(name)))
}

/** As many of the mails that were last marked are remembered one by one. */
const MAX_READ = 5_000

export interface ReadMail {
  isRead: (message: { id: string; received_at: string }) => boolean
  markRead: (message: { id: string; received_at: string }) => void
  markUnread: (message: { id: string; received_at: string }) => void
  /** Those received until that time. */
  markAllRead: (until: string) => void
}

/** Which mail was read in this browser. */
export function useReadMail(): ReadMail {
  const session = useContext(SessionContext)
  const name = session === null ? 'read' : `read-${session.account.id}-${session.environment}`
  // Mail until `before` is read and later mail is not, except for those with these ids.
  const [{ before, ids }, store] = useStored(name, { before: '', ids: [] as string[] })
  const exceptions = new Set(ids)
  const isRead: ReadMail['isRead'] = ({ id, received_at }) => exceptions.has(id) !== received_at <= before
  const toggle = (changed: string) => {
    const others = ids.filter((id) => id !== changed)
    store({ before, ids: exceptions.has(changed) ? others : [...others, changed].slice(-MAX_READ) })
  }
  return {
    isRead,
    markRead: (message) => {
      if (!isRead(message)) toggle(message.id)
    },
    markUnread: (message) => {
      if (isRead(message)) toggle(message.id)
    },
    markAllRead: (until) => store({ before: until, ids: [] }),
  }
}
