import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

/** The part of Jest's configuration that selects suites. */
export interface Selection {
  rootDir: string
  runTestsByPath: boolean
  nonFlagArgs: readonly string[]
  testPathPatterns: { toExecutor(options: { rootDir: string }): { isMatch(path: string): boolean } }
}

const BUILD = join(process.cwd(), 'dist')
const IMPORT = /^\s*(?:import|export)\b[^'"\n]*['"]([^'"\n]+)['"]/gm

/** The compiled suites that the command line selects. Jest may run fewer of them. */
export async function selectedSuites(selection: Selection): Promise<string[]> {
  const { rootDir, runTestsByPath, nonFlagArgs, testPathPatterns } = selection
  if (runTestsByPath) return nonFlagArgs.map((path) => resolve(path))
  const patterns = testPathPatterns.toExecutor({ rootDir })
  const files = await readdir(BUILD, { recursive: true })
  const suites = files.filter((file) => file.endsWith('.test.js')).map((file) => join(BUILD, file))
  return suites.filter((suite) => patterns.isMatch(suite))
}

/** Whether one of the compiled files imports one of the wanted ones, directly or indirectly. */
export function importsAny(files: readonly string[], wanted: readonly string[]): boolean {
  const paths = new Set(wanted.map((path) => join(BUILD, path)))
  const seen = new Set(files)
  for (const file of seen) {
    if (paths.has(file)) return true
    for (const imported of importsOf(file)) seen.add(imported)
  }
  return false
}

function importsOf(file: string): string[] {
  const specifiers = [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, specifier = '']) => specifier)
  return specifiers.flatMap((specifier) => {
    if (specifier.startsWith('#')) return [join(BUILD, specifier.slice(1))]
    return specifier.startsWith('.') ? [join(dirname(file), specifier)] : []
  })
}
