// Keeps dist/ up to date with the sources: compiles the files that changed, with the same layout, removes the output of
// those that are gone, and bundles the entry files and the console.
import { execFileSync } from 'node:child_process'
import { globSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { bundle, ENTRY_FILES } from './bundle.mjs'
import { bundleConsole } from './console.mjs'

const SOURCES = ['apps', 'libs', 'clients', 'test', 'infra']
/** If one of these changes, everything is built again. npm changes the second one when it installs a package. */
const TOOLS = ['package.json', 'node_modules/.package-lock.json', '.swcrc', 'infra/build/*.mjs']
/** The sources and tools of the last complete build. */
const BUILT_FROM = 'dist/built-from.json'
/** They have hashes in the names of their files. */
const BUNDLED_FOLDERS = ['dist/chunks', 'dist/apps/console/files']
/** Version and commit of the build, for /version, metrics and `mayfly --version`. */
const BUILD_INFO = 'dist/build-info.json'

const LOCK = 'node_modules/.mayfly-build.lock'
const LOCK_TIMEOUT_MS = 300_000

if (import.meta.main) await build()

/** Builds what changed, and says so on standard error. Waits for a build of another process. */
export async function build() {
  // The system releases the lock however this process ends.
  const lock = new DatabaseSync(LOCK, { timeout: LOCK_TIMEOUT_MS })
  try {
    lock.exec('BEGIN EXCLUSIVE')
    await buildChanges()
  } finally {
    lock.close()
  }
}

async function buildChanges() {
  const { files, isFull, changed, removed } = changes()
  const count = changed.length + removed.length
  if (count > 0) {
    const startedMs = performance.now()
    process.stderr.write(`mayfly: building ${isFull ? 'everything' : `what changed (files: ${count})`} ...`)
    // Written again at the end, so that the build after one that was killed is complete.
    rmSync(isFull ? 'dist' : BUILT_FROM, { recursive: true, force: true })
    await update(changed, removed)
    writeFileSync(BUILT_FROM, JSON.stringify(files))
    process.stderr.write(` done in ${((performance.now() - startedMs) / 1_000).toFixed(1)} s\n`)
  }
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  const info = JSON.stringify({ version, commit: process.env.MAYFLY_COMMIT || headCommit() })
  if (read(BUILD_INFO) !== info) writeFileSync(BUILD_INFO, info)
}

async function update(changed, removed) {
  // No process that is bundled imports tests or development servers.
  const bundles = [...changed, ...removed].some((file) => !/^(test|infra)\//.test(file))
  // Bundles have replaced what the entry files were compiled to.
  const entries = bundles ? globSync(ENTRY_FILES.map((file) => `${file}.ts`)) : []
  const compiled = [...new Set([...changed, ...entries])].filter((file) => /\.(ts|js)$/.test(file))
  const compiledTo = (file) => `dist/${file.replace(/\.ts$/, '.js')}`
  for (const file of removed.map(compiledTo)) {
    rmSync(file, { force: true })
    rmSync(`${file}.map`, { force: true })
  }
  if (compiled.length > 0) execFileSync('swc', [...compiled, '-d', 'dist', '--quiet'], { stdio: 'inherit' })
  if (!bundles) return
  for (const folder of BUNDLED_FOLDERS) rmSync(folder, { recursive: true, force: true })
  await Promise.all([bundle(), bundleConsole()])
}

/** What differs from the last complete build. */
export function changes() {
  const before = JSON.parse(read(BUILT_FROM) ?? '{}')
  const files = Object.fromEntries([...globSync(TOOLS), ...sources()].map((file) => [file, stampOf(file)]))
  const differing = Object.keys({ ...before, ...files }).filter((file) => files[file] !== before[file])
  const isFull = !differing.every(isSource)
  const changed = Object.keys(files).filter(
    (file) => isSource(file) && (isFull || files[file] !== before[file]),
  )
  return { files, isFull, changed, removed: differing.filter((file) => !(file in files)) }
}

function isSource(file) {
  return SOURCES.includes(file.split('/')[0]) && !file.endsWith('.mjs')
}

function sources() {
  const files = SOURCES.flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((file) => `${folder}/${file}`),
  )
  return files.filter((file) => /\.(ts|js|tsx|css|html)$/.test(file) && !/\/(node_modules|dist)\//.test(file))
}

/** Differs after a file was changed. */
function stampOf(file) {
  const { size, mtimeMs } = statSync(file)
  return `${size} ${mtimeMs}`
}

/** Null if there is no such file. */
function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

/** Null if this folder is not a git checkout, as in an image, or is inside the checkout of another project. */
function headCommit() {
  const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }
  try {
    const [folder, commit] = execFileSync('git', ['rev-parse', '--show-prefix', 'HEAD'], options).split('\n')
    return folder === '' ? commit : null
  } catch {
    return null
  }
}
