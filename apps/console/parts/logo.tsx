/** The mark of Mayfly: an envelope with the wings of a mayfly. The favicon is the same drawing. */
export function Logo({ size = 24 }: { size?: number }) {
  return (
    <svg class="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <path class="wing" d="M15.2 15C12.5 6.5 7.5 2.6 2.3 2.5c-.9 6.9 3.5 11.9 11.7 13.5z" />
      <path class="wing" d="M16.8 15c2.7-8.5 7.7-12.4 12.9-12.5.9 6.9-3.5 11.9-11.7 13.5z" />
      <path class="body" d="M5 14h22a2 2 0 0 1 2 2v11a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V16a2 2 0 0 1 2-2z" />
      <path class="flap" d="m4 16 12 8 12-8" />
    </svg>
  )
}
