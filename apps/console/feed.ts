import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { followEvents } from './parts/followed-events.js'
import type { Session } from './session.js'

type Events = readonly Schemas['EventBody'][]

/** What happens in all inboxes of the environment, in one stream for all lists of the page. */
export class Feed {
  /** Resolves once events are not missed any more: what is read afterwards and the events together are complete. */
  readonly started: Promise<unknown>
  readonly #listeners = new Set<(events: Events) => void>()
  readonly #aborter = new AbortController()

  /** `onLive` is called when the connection is lost and when it is back, `onError` when the server refuses the stream. */
  constructor(
    { api, readsMail }: Pick<Session, 'api' | 'readsMail'>,
    { onLive, onError }: { onLive: (isLive: boolean) => void; onError: (error: unknown) => void },
  ) {
    const { signal } = this.#aborter
    // A session that may not read mail has a feed that never starts, so its lists ask for nothing.
    const since = readsMail ? api.messages.cursor({ signal }) : new Promise<string>(() => undefined)
    this.started = since
    const follow = (position: string) =>
      followEvents({
        since: position,
        signal,
        open: (after, untilClosed) => api.messages.events({ since: after, signal: untilClosed }),
        check: () => api.messages.cursor({ signal }),
        onEvents: (events) => {
          for (const listener of this.#listeners) listener(events)
        },
        onLive,
      })
    // Every list that waits for the start shows why it fails.
    const ended = since.then(
      (position) => follow(position),
      () => undefined,
    )
    ended.catch((error: unknown) => {
      if (!signal.aborted) onError(error)
    })
  }

  /** Returns a function that ends it. */
  subscribe(listener: (events: Events) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#aborter.abort()
  }
}

/** After this time, what happened meanwhile is not read event by event. */
const LONG_HIDDEN_MS = 10 * 60_000

/** Calls a function when the page is shown after it was hidden for long. */
export function useAfterHidden(restart: () => void): void {
  useEffect(() => {
    let hiddenAt = document.hidden ? Date.now() : Infinity
    const onVisibility = () => {
      const isLong = Date.now() - hiddenAt > LONG_HIDDEN_MS
      hiddenAt = document.hidden ? Date.now() : Infinity
      if (isLong) restart()
    }
    document.addEventListener('visibilitychange', onVisibility)
    return () => document.removeEventListener('visibilitychange', onVisibility)
  }, [])
}

export interface OpenFeed {
  feed: Feed
  /** False while the connection is lost. */
  isLive: boolean
  /** Why the server refused the stream; null if it did not. */
  error: unknown
  /** Opens another one, and so reads all lists again. */
  restart: () => void
}

/** The feed of a session, for as long as the component is shown. */
export function useFeed(session: Session): OpenFeed {
  const [starts, setStarts] = useState(0)
  const [isLive, setLive] = useState(true)
  const [error, setError] = useState<unknown>(null)
  const feed = useMemo(
    () => new Feed(session, { onLive: setLive, onError: setError }),
    [session, session.readsMail, starts],
  )
  useEffect(() => {
    setError(null)
    return () => feed.close()
  }, [feed])
  const restart = () => setStarts((value) => value + 1)
  useAfterHidden(restart)
  return { feed, isLive: isLive && error === null, error, restart }
}
