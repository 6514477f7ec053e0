import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { ApiError, MayflyError, UnreachableError } from '#clients/typescript/src/mayfly.js'
import { text } from '../text.js'

/** What has been loaded, or why it could not be. */
export interface Loaded<Value> {
  value: Value | undefined
  error: unknown
  /** Loads again; the former value is shown meanwhile. */
  reload: () => void
}

/** How often a page asks whether the server is ready again. */
const CHECK_MS = 2_000

/** Whether the server, or what is behind a proxy, was away or not ready. */
function isOutage(error: unknown): boolean {
  return error instanceof MayflyError && (!(error instanceof ApiError) || error.status === 503)
}

/** After an outage, calls `retry` once the server is ready again. */
export function useRetry(error: unknown, retry: () => void): void {
  useEffect(() => {
    if (!isOutage(error)) return
    const aborter = new AbortController()
    const { signal } = aborter
    let timer: ReturnType<typeof setTimeout> | undefined
    // Until there is an answer, it asks again.
    const check = async () => {
      const answer = document.hidden ? null : await fetch('/readyz', { signal }).catch(() => null)
      if (signal.aborted) return
      if (answer?.ok === true) retry()
      else checkLater()
    }
    const checkLater = () => {
      timer = setTimeout(() => void check(), CHECK_MS)
    }
    checkLater()
    return () => {
      aborter.abort()
      clearTimeout(timer)
    }
  }, [error])
}

/**
 * Loads when the component is first shown, again if `dependencies` change, and after an outage; with `refreshMs` also at
 * that interval, while the page is visible.
 */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  dependencies: readonly unknown[],
  refreshMs?: number,
): Loaded<Value> {
  const [state, setState] = useState<Pick<Loaded<Value>, 'value' | 'error'>>({
    value: undefined,
    error: null,
  })
  const [reloads, setReloads] = useState(0)
  useEffect(() => {
    const aborter = new AbortController()
    // In a promise, so that an error that is thrown at once is shown too.
    const loading = Promise.resolve(aborter.signal).then(load)
    loading.then(
      (value) => {
        if (!aborter.signal.aborted) setState({ value, error: null })
      },
      (error: unknown) => {
        if (!aborter.signal.aborted) setState(({ value }) => ({ value, error }))
      },
    )
    return () => aborter.abort()
  }, [...dependencies, reloads])
  const reload = useCallback(() => setReloads((value) => value + 1), [])
  useRetry(state.error, reload)
  useEffect(() => {
    if (refreshMs === undefined) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') reload()
    }, refreshMs)
    return () => clearInterval(timer)
  }, [refreshMs])
  return { ...state, reload }
}

/** Shows a loading message, then the value or the error. */
export function Show<Value>({
  loaded: { value, error, reload },
  children,
}: {
  loaded: Loaded<Value>
  children: (value: Value) => ComponentChildren
}) {
  return (
    <>
      {error !== null && <Failure error={error} retry={reload} />}
      {value !== undefined && children(value)}
      {value === undefined && error === null && <Loading />}
    </>
  )
}

export function Loading() {
  return (
    <p class="loading" role="status">
      {text.loading}
    </p>
  )
}

/** The errors whose texts in the API are for programs. */
const TEXTS: Readonly<Record<string, { title?: string; fix: string }>> = text.errors

/** An error in words: what is wrong, and what to do. */
export function Failure({
  error,
  retry,
  onClose,
}: {
  error: unknown
  retry?: () => void
  onClose?: () => void
}) {
  const { title, fix } = (error instanceof ApiError ? TEXTS[error.code] : undefined) ?? {}
  return (
    <div class="failure" role="alert">
      {error instanceof ApiError ? (
        <>
          <strong>{title ?? error.title}</strong>
          <p>{error.detail}</p>
          <p>{fix ?? error.fix.replaceAll('`', '')}</p>
          {error.errors.length > 1 && (
            <ul>
              {error.errors.map(({ pointer, parameter, header, detail }) => (
                <li key={detail}>
                  {pointer ?? parameter ?? header}: {detail}
                </li>
              ))}
            </ul>
          )}
          <small>{text.requestId(error.requestId)}</small>
        </>
      ) : (
        <strong>{messageOf(error)}</strong>
      )}
      {retry !== undefined && mayPass(error) && (
        <button type="button" onClick={retry}>
          {text.tryAgain}
        </button>
      )}
      {onClose !== undefined && (
        <button type="button" onClick={onClose}>
          {text.close}
        </button>
      )}
    </div>
  )
}

/** Whether another attempt may succeed. A mistake in a request stays one. */
function mayPass(error: unknown): boolean {
  return error instanceof MayflyError && !(error instanceof ApiError && error.status === 400)
}

function messageOf(error: unknown): string {
  if (error instanceof UnreachableError) return text.unreachable
  return error instanceof Error ? error.message : String(error)
}

/** An action that a user starts: whether it runs, and how it failed. */
export function useAction(): {
  isRunning: boolean
  error: unknown
  /** Runs an action. Resolves to whether it succeeded. */
  run: (action: () => Promise<unknown>) => Promise<boolean>
} {
  const [state, setState] = useState<{ isRunning: boolean; error: unknown }>({
    isRunning: false,
    error: null,
  })
  const run = async (action: () => Promise<unknown>) => {
    setState({ isRunning: true, error: null })
    try {
      await action()
      setState({ isRunning: false, error: null })
      return true
    } catch (error) {
      setState({ isRunning: false, error })
      return false
    }
  }
  return { ...state, run }
}
