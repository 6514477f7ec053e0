import { h } from 'preact'
import type { IconNode } from 'lucide'

/** An icon of Lucide. What it means is in the text or the label beside it. */
export function Icon({ of: node, size = 18 }: { of: IconNode; size?: number }) {
  const stroke = { fill: 'none', stroke: 'currentColor', 'stroke-width': 2 }
  const shape = { 'stroke-linecap': 'round', 'stroke-linejoin': 'round' }
  return h(
    'svg',
    {
      class: 'icon',
      width: size,
      height: size,
      viewBox: '0 0 24 24',
      'aria-hidden': true,
      ...stroke,
      ...shape,
    },
    node.map(([tag, attributes], index) => h(tag, { key: index, ...attributes })),
  )
}

/** A button that shows an icon, with a word of its label where it is wide, and its label when it is pointed at. */
export function IconButton({
  of: node,
  label,
  word,
  onClick,
  ...attributes
}: {
  of: IconNode
  label: string
  word?: string
  onClick: () => void
  disabled?: boolean
  class?: string
  'aria-pressed'?: boolean
  'aria-expanded'?: boolean
}) {
  return (
    <button
      type="button"
      {...attributes}
      class={`icon-button ${attributes.class ?? ''}`}
      aria-label={label}
      title={label}
      onClick={onClick}
    >
      <Icon of={node} />
      {word !== undefined && <span class="word">{word}</span>}
    </button>
  )
}
