// Compiles every source file to dist/ (one tree, same layout), removing what is stale.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
execFileSync('swc', ['apps', 'libs', 'test', 'infra', '-d', 'dist', '--ignore', '**/*.mjs', '--quiet'], {
  stdio: 'inherit',
})

// What the build was made from, for /version, metrics and `mayfly --version`.
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
writeFileSync(
  'dist/build-info.json',
  JSON.stringify({ version, commit: process.env.MAYFLY_COMMIT || headCommit() }),
)

/** Null outside of a git checkout, as in an image. */
function headCommit() {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return null
  }
}
