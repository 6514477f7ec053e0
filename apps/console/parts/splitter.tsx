import { useRef } from 'preact/hooks'
import { useStored } from './stored.js'

const STEP_PX = 16

/**
 * The width of a pane in pixels, and the separator that changes it, by dragging or with the arrow keys. This browser
 * remembers the width.
 */
export function useSplitter(
  name: string,
  label: string,
  [min, initial, max]: readonly [number, number, number],
) {
  const [stored, setWidth] = useStored(`width-${name}`, initial)
  const drag = useRef<{ x: number; width: number } | null>(null)
  const within = (wanted: number) => Math.min(Math.max(Math.round(wanted), min), max)
  const width = within(stored)
  const resize = (wanted: number) => setWidth(within(wanted))
  const splitter = (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={width}
      aria-valuemin={min}
      aria-valuemax={max}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId)
        drag.current = { x: event.clientX, width }
      }}
      onPointerMove={({ clientX }) => {
        if (drag.current !== null) resize(drag.current.width + clientX - drag.current.x)
      }}
      onLostPointerCapture={() => {
        drag.current = null
      }}
      onKeyDown={({ key }) => {
        if (key === 'ArrowLeft') resize(width - STEP_PX)
        if (key === 'ArrowRight') resize(width + STEP_PX)
      }}
    />
  )
  return { width, splitter }
}
