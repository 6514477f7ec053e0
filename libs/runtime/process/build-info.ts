import { readFileSync } from 'node:fs'
import type { Settings } from '#libs/runtime/config/settings.js'

export interface BuildInfo {
  /** Of package.json. */
  version: string
  /** Full hash; null if the build was made outside of a git checkout. */
  commit: string | null
}

/** Written by infra/build/build.mjs. */
export const BUILD_INFO = JSON.parse(
  readFileSync(new URL('../../../build-info.json', import.meta.url), 'utf8'),
) as BuildInfo

export function engineName({ kafkaBrokers }: Pick<Settings, 'kafkaBrokers'>): 'embedded' | 'distributed' {
  return kafkaBrokers === null ? 'embedded' : 'distributed'
}
