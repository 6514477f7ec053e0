import { randomInt } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { messageOf } from '#libs/runtime/errors.js'
import { fuzzMime } from './mime.js'
import { fuzzSmtp } from './smtp.js'
import type { FuzzTarget } from './target.js'

/* `npm run fuzz`: fuzzes one target for a given time. Saves inputs that fail, and exits with 1 if there were any. */

const TARGETS: Readonly<Record<string, FuzzTarget>> = { mime: fuzzMime, smtp: fuzzSmtp }

const USAGE = `npm run fuzz -- <target> [options]
  <target>         ${Object.keys(TARGETS).join(', ')}
  --minutes <n>    how long, 1 unless said otherwise
  --seed <n>       begins there instead of anywhere
  --folder <path>  keeps inputs that failed there instead of in a temporary folder
`

try {
  process.exitCode = (await run(process.argv.slice(2))) === 0 ? 0 : 1
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n\n${USAGE}`)
  process.exitCode = 2
}

async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      minutes: { type: 'string', default: '1' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      folder: { type: 'string', default: join(tmpdir(), 'mayfly-fuzz') },
    },
  })
  const [name = ''] = positionals
  const target = Object.hasOwn(TARGETS, name) ? TARGETS[name] : undefined
  if (target === undefined || positionals.length !== 1) throw new Error(`unknown target "${name}"`)
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
  if (!(minutes > 0 && minutes <= 24 * 60)) throw new Error('--minutes must be a number up to 1440')
  if (!Number.isSafeInteger(seed)) throw new Error('--seed must be an integer')
  const say = (line: string) => process.stdout.write(`${new Date().toISOString()} ${name}: ${line}\n`)
  say(`seed ${seed}, ${minutes} minutes`)
  return target({ endsAtMs: Date.now() + minutes * 60_000, seed, folder: values.folder, say })
}
