import { useEffect, useState } from 'preact/hooks'

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
    return stored === null ? initial : (JSON.parse(stored) as Value)
  } catch {
    return initial
  }
}

/** As many of the mails that were read last are remembered one by one. */
const MAX_READ = 5_000

export interface ReadMail {
  isRead: (message: { id: string; received_at: string }) => boolean
  markRead: (ids: readonly string[]) => void
  markAllRead: () => void
}

/** Which mail was read in this browser. */
export function useReadMail(): ReadMail {
  const [{ before, ids }, store] = useStored('read', { before: '', ids: [] as string[] })
  const known = new Set(ids)
  return {
    isRead: ({ id, received_at }) => known.has(id) || received_at <= before,
    markRead: (read) => {
      const added = read.filter((id) => !known.has(id))
      if (added.length > 0) store({ before, ids: [...ids, ...added].slice(-MAX_READ) })
    },
    markAllRead: () => store({ before: new Date().toISOString(), ids: [] }),
  }
}
