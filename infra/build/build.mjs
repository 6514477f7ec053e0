// Compiles every source file to dist/ (one tree, same layout), removing what is stale, and bundles what is started.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { bundle } from './bundle.mjs'

rmSync('dist', { recursive: true, force: true })
execFileSync('swc', ['apps', 'libs', 'test', 'infra', '-d', 'dist', '--ignore', '**/*.mjs', '--quiet'], {
  stdio: 'inherit',
})
await bundle()

// What the build was made from, for /version, metrics and `mayfly --version`.
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
writeFileSync(
  'dist/build-info.json',
  JSON.stringify({ version, commit: process.env.MAYFLY_COMMIT || headCommit() }),
)

/** Null if this folder is no git checkout, as in an image, or lies within that of another project. */
function headCommit() {
  const git = (...args) =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return git('rev-parse', '--show-prefix') === '' ? git('rev-parse', 'HEAD') : null
  } catch {
    return null
  }
}
