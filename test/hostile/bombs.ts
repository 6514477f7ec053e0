import type { Bomb } from './bomb.js'
import { HEADER_BOMBS } from './header-bombs.js'
import { HTML_BOMBS } from './html-bombs.js'
import { STRUCTURE_BOMBS } from './structure-bombs.js'
import { TEXT_BOMBS } from './text-bombs.js'

/** All bombs by name. */
export const BOMBS: Readonly<Record<string, Bomb>> = {
  ...STRUCTURE_BOMBS,
  ...HEADER_BOMBS,
  ...TEXT_BOMBS,
  ...HTML_BOMBS,
}
