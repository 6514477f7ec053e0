// Compiles every source file to dist/ (one tree, same layout), removing what is stale.
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
execFileSync('swc', ['apps', 'libs', 'test', 'infra', '-d', 'dist', '--ignore', '**/*.mjs', '--quiet'], {
  stdio: 'inherit',
})
