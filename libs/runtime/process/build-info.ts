import { createRequire } from 'node:module'
import type { Settings } from '#libs/runtime/config/settings.js'

export interface BuildInfo {
  /** From package.json. */
  version: string
  /** The full commit hash; null if it was built outside a git checkout. */
  commit: string | null
}

/** Written by infra/build/build.mjs. */
export const BUILD_INFO = createRequire(import.meta.url)('#build-info') as BuildInfo

export function engineName({ kafkaBrokers }: Pick<Settings, 'kafkaBrokers'>): 'embedded' | 'distributed' {
  return kafkaBrokers === null ? 'embedded' : 'distributed'
}
