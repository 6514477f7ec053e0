#!/usr/bin/env node
// The command `mayfly`. It runs on the build, and builds first if there is none.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const main = new URL('../../dist/apps/cli/main.js', import.meta.url)
if (!existsSync(main))
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 2, 2] })
await import(main.href)
