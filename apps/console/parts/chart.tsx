import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'

export interface Series {
  label: string
  values: readonly (number | null)[]
  /** The custom property of the style sheet with its color. */
  color: string
}

const HEIGHT_PX = 220
const DAY_S = 86_400
const MINUTE_S = 60
/** Half of the last time below the chart is beyond its end. */
const PADDING_PX = 32

const FULL = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })
const DATE = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' })
const HOUR_MINUTE = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
const CLOCK = new Intl.DateTimeFormat('en', HOUR_MINUTE)
const CLOCK_WITH_SECONDS = new Intl.DateTimeFormat('en', { ...HOUR_MINUTE, second: '2-digit' })

const formatTick = (seconds: number, format: Intl.DateTimeFormat) => format.format(seconds * 1_000)

/** Days for a chart of several, the time of the day for a shorter one, with seconds for one of minutes. */
function axisFormat(times: readonly number[]): (seconds: number) => string {
  const length = (times.at(-1) ?? 0) - (times[0] ?? 0)
  const format = length > 2 * DAY_S ? DATE : length > 30 * MINUTE_S ? CLOCK : CLOCK_WITH_SECONDS
  return (seconds) => formatTick(seconds, format)
}

/**
 * A chart over time, without its numbers: a table beside it has them for everybody. The library is only loaded when a
 * chart is shown.
 */
export function Chart({
  title,
  times,
  series,
}: {
  title: string
  /** Unix seconds, ascending. */
  times: readonly number[]
  series: readonly Series[]
}) {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const parent = element.current
    if (parent === null) return
    let chart: uPlot | undefined
    let isUnmounted = false
    const observer = new ResizeObserver(() => {
      chart?.setSize({ width: parent.clientWidth, height: HEIGHT_PX })
    })
    const draw = async () => {
      const { default: Plot } = await import('uplot')
      if (isUnmounted) return
      const style = getComputedStyle(parent)
      const color = (name: string) => style.getPropertyValue(name).trim()
      const axis = {
        stroke: color('--muted'),
        grid: { stroke: color('--line'), width: 1 },
        ticks: { stroke: color('--line'), width: 1 },
      }
      const format = axisFormat(times)
      const timeAxis = { ...axis, values: (_: uPlot, ticks: number[]) => ticks.map(format) }
      const options: uPlot.Options = {
        width: parent.clientWidth,
        height: HEIGHT_PX,
        padding: [null, PADDING_PX, null, null],
        axes: [timeAxis, { ...axis, size: 70 }],
        series: [
          { value: (_, seconds: number | null) => (seconds === null ? '' : formatTick(seconds, FULL)) },
          ...series.map(({ label, color: name, values }) => ({
            label,
            // A value between two gaps is only seen as a point.
            points: { show: values.includes(null) },
            value: (_: uPlot, value: number | null) => String(value ?? ''),
            stroke: color(name),
            width: 2,
            spanGaps: false,
          })),
        ],
      }
      chart = new Plot(options, [[...times], ...series.map(({ values }) => [...values])], parent)
      observer.observe(parent)
    }
    void draw()
    return () => {
      isUnmounted = true
      observer.disconnect()
      chart?.destroy()
    }
  }, [times, series])
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <div ref={element} class="chart" aria-hidden="true" />
    </figure>
  )
}
