import { SETTINGS } from './settings.js'
import type { Setting } from './setting.js'

/** Every setting as a row of Markdown, in the order of the code. */
export function renderSettings(): string {
  const rows = Object.values<Setting<unknown>>(SETTINGS).map(
    ({ variable, defaultText, help }) => `| ${variable} | ${defaultText ?? 'unset'} | ${help} |`,
  )
  return ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n') + '\n'
}
