// Runs the parts of `npm run check`, two at a time, the longest first. Prints the output of each when it ends.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

const waiting = ['check:lint', 'check:types', 'check:generated', 'check:format', 'check:imports']

async function runPending() {
  for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
    const child = spawn(`npm run --silent ${part} 2>&1`, {
      shell: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    process.stdout.write(printed)
    if (code === 0) continue
    process.stdout.write(`${part} failed\n`)
    process.exitCode = 1
  }
}

await Promise.all([runPending(), runPending()])
