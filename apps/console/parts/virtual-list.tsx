import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Rows that are rendered above and below the visible ones. */
const EXTRA_ROWS = 8

/**
 * A list of any length with rows of one height, of which only those in view are in the page. The parent gives its
 * height.
 */
export function VirtualList<Item>({
  label,
  items,
  rowHeight,
  keyOf,
  row,
  onNearEnd,
  selected,
}: {
  label: string
  items: readonly Item[]
  /** In pixels. */
  rowHeight: number
  keyOf: (item: Item) => string
  row: (item: Item) => ComponentChildren
  /** Called when the last rows come into view. */
  onNearEnd: () => void
  /** The index of an item that is to be in view; -1 for none. */
  selected?: number
}) {
  const element = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 600 })
  const measure = () => {
    const { scrollTop, clientHeight } = element.current ?? { scrollTop: 0, clientHeight: 600 }
    setView((last) =>
      last.top === scrollTop && last.height === clientHeight
        ? last
        : { top: scrollTop, height: clientHeight },
    )
  }
  useLayoutEffect(() => {
    measure()
    const observer = new ResizeObserver(measure)
    if (element.current !== null) observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  const keyAt = (index: number) => {
    const item = items[index]
    return item === undefined ? undefined : keyOf(item)
  }
  // Items that are added above do not move those in view.
  const topIndex = Math.floor(view.top / rowHeight)
  const topItem = useRef<{ index: number; key: string | undefined }>({ index: 0, key: undefined })
  useLayoutEffect(() => {
    const { index, key } = topItem.current
    const list = element.current
    if (list !== null && index > 0 && key !== undefined && keyAt(index) !== key) {
      const moved = items.findIndex((item) => keyOf(item) === key)
      if (moved >= 0) list.scrollTop += (moved - index) * rowHeight
    }
  }, [items])
  useLayoutEffect(() => {
    topItem.current = { index: topIndex, key: keyAt(topIndex) }
  })
  useEffect(() => {
    const list = element.current
    if (list === null || selected === undefined || selected < 0) return
    const top = selected * rowHeight
    if (top < list.scrollTop) list.scrollTop = top
    else if (top + rowHeight > list.scrollTop + list.clientHeight)
      list.scrollTop = top + rowHeight - list.clientHeight
  }, [keyAt(selected ?? -1)])
  const first = Math.max(Math.floor(view.top / rowHeight) - EXTRA_ROWS, 0)
  const end = Math.min(Math.ceil((view.top + view.height) / rowHeight) + EXTRA_ROWS, items.length)
  useEffect(() => {
    if (end >= items.length) onNearEnd()
  }, [end, items.length])
  return (
    <div class="virtual-list" ref={element} onScroll={measure} tabIndex={0} role="group" aria-label={label}>
      <ul style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, end).map((item, index) => (
          <li
            key={keyOf(item)}
            style={{ top: `${(first + index) * rowHeight}px`, height: `${rowHeight}px` }}
            aria-setsize={items.length}
            aria-posinset={first + index + 1}
          >
            {row(item)}
          </li>
        ))}
      </ul>
    </div>
  )
}
