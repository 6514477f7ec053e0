// Compiles every source file to dist/ with the same layout, removes stale files, and bundles the entry files and the console.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { bundle } from './bundle.mjs'
import { bundleConsole } from './console.mjs'

rmSync('dist', { recursive: true, force: true })
const sources = ['apps', 'libs', 'clients', 'test', 'infra']
const ignored = ['**/*.mjs', '**/*.tsx'].flatMap((pattern) => ['--ignore', pattern])
execFileSync('swc', [...sources, '-d', 'dist', ...ignored, '--quiet'], { stdio: 'inherit' })
await Promise.all([bundle(), bundleConsole()])

// Version and commit of the build, for /version, metrics and `mayfly --version`.
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
writeFileSync(
  'dist/build-info.json',
  JSON.stringify({ version, commit: process.env.MAYFLY_COMMIT || headCommit() }),
)

/** Null if this folder is not a git checkout, as in an image, or is inside the checkout of another project. */
function headCommit() {
  const git = (...args) =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return git('rev-parse', '--show-prefix') === '' ? git('rev-parse', 'HEAD') : null
  } catch {
    return null
  }
}
