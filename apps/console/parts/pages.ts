import { useCallback, useRef, useState } from 'preact/hooks'

/** A list whose pages are read as they come into view. */
export interface Pages<Item> {
  hasMore: boolean
  /**
   * Reads the first page. The pages of an earlier start are no longer read once its signal has aborted. Pages of a search
   * may be short although others follow.
   */
  start: (pages: AsyncGenerator<Item[], void>, signal: AbortSignal, isSearch?: boolean) => void
  /** Reads the next page, unless one is being read. */
  loadMore: () => void
}

/** The client asks for as many. */
const PAGE_ITEMS = 100

/** `onPage` gets the items of each page, `onError` why one could not be read. */
export function usePages<Item>(
  onPage: (items: readonly Item[]) => void,
  onError: (error: unknown) => void,
): Pages<Item> {
  const [hasMore, setHasMore] = useState(true)
  const more = useRef<() => void>(() => undefined)
  const start: Pages<Item>['start'] = (pages, signal, isSearch = false) => {
    let isLoading = false
    const next = () => {
      if (isLoading || signal.aborted) return
      isLoading = true
      pages.next().then(
        ({ value, done = false }) => {
          isLoading = false
          if (signal.aborted) return
          setHasMore(!done)
          if (value) onPage(value)
          // After an empty page, nothing comes into view. After a short one, no request is needed to know the end.
          if (value && value.length < (isSearch ? 1 : PAGE_ITEMS)) next()
        },
        (error: unknown) => {
          if (!signal.aborted) onError(error)
        },
      )
    }
    setHasMore(true)
    more.current = next
    next()
  }
  return { hasMore, start, loadMore: useCallback(() => more.current(), []) }
}
