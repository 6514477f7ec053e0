import { existsSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/** Packages of programs on Debian and Ubuntu. */
const PACKAGES: Readonly<Record<string, string>> = {
  java: 'openjdk-17-jre-headless',
  'redis-server': 'redis-server',
}
/** Throws, naming the package to install, if a program is not in PATH. */
export function requireProgram(program: string): void {
  const folders = (process.env.PATH ?? '').split(delimiter)
  if (isAbsolute(program) || folders.some((folder) => existsSync(join(folder, program)))) return
  const from = PACKAGES[program]
  throw new Error(`${program} is not installed${from === undefined ? '' : `: apt-get install ${from}`}`)
}
